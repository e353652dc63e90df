import type { TaskId } from '../../src/domain/ids.js';
import type { Receipt, TaskDraft } from '../../src/protocol/tasks-api.js';
import { queueNames } from './queue-steps.js';
import { Random } from './random.js';
import type { Step } from './steps.js';
import type { Task } from './task-book.js';
import { Violation } from './violation.js';
import type { World } from './world.js';

const priorities = ['high', 'medium', 'low'] as const;
const keyCount = 12;

export function submit(world: World, random: Random): void {
  const server = random.find(world.openServers);
  if (server === null) return;
  const drafts = Array.from({ length: random.whole(1, 4) }, () => draftOf(random));
  world.ask({
    what: `submit ${drafts.map(nameOf).join(', ')}`,
    server,
    use: (engine) => engine.submitMany(drafts),
    heard: (outcomes) => {
      outcomes.forEach((outcome, index) => {
        const draft = drafts[index];
        if (outcome.kind === 'refused' || draft === undefined) {
          world.trace.note(`  refused: ${outcome.kind === 'refused' ? outcome.code : ''}`);
          return;
        }
        acknowledge(world, draft, outcome.receipt);
      });
    },
  });
}

function acknowledge(
  world: World,
  { idempotencyKey, cost }: TaskDraft,
  { taskId, status }: Receipt,
): void {
  const { ledger, trace } = world;
  trace.note(`  ${trace.task(taskId)} accepted, ${status}`);
  ledger.acknowledged.add(taskId);
  ledger.costOf.set(taskId, cost?.tokens ?? 0);
  world.afterwards(() => {
    if (world.tasks.find(taskId) === null) {
      throw new Violation('what is acknowledged exists', trace.task(taskId));
    }
  });
  if (idempotencyKey === undefined) return;
  const known = ledger.taskOfKey.get(idempotencyKey) ?? taskId;
  ledger.taskOfKey.set(idempotencyKey, known);
  if (known === taskId) return;
  throw new Violation('one task for one key', `${trace.task(known)} and ${trace.task(taskId)}`);
}

/** A key always comes with the same task. */
function draftOf(random: Random): TaskDraft {
  if (!random.chance(0.25)) return anyDraft(random);
  const key = random.whole(1, keyCount);
  return { ...anyDraft(new Random(key)), idempotencyKey: `key-${key}` };
}

function anyDraft(random: Random): TaskDraft {
  const queue = random.pick(queueNames);
  return {
    queue,
    taskType: random.pick(['a', 'b']),
    priority: random.pick(priorities),
    parameters: { number: random.whole(1, 9) },
    requiredCapabilities: random.chance(0.2) ? ['gpu'] : [],
    timeoutSeconds: random.whole(2, 8),
    ...(random.chance(0.7) ? { maxRetries: random.whole(0, 3) } : {}),
    ...(random.chance(0.3) ? { delaySeconds: random.whole(1, 6) } : {}),
    ...(random.chance(0.2) ? { dispatchDeadlineSeconds: random.whole(1, 8) } : {}),
    ...(queue === 'tokens' ? { cost: { tokens: random.whole(0, 8) } } : {}),
    ...workflowOf(random),
  };
}

function workflowOf(random: Random): Pick<TaskDraft, 'workflowId' | 'workflowOnFailure'> {
  if (!random.chance(0.4)) return {};
  const workflowOnFailure = random.pick(['halt', 'continue'] as const);
  return { workflowId: `flow-${random.whole(1, 3)}`, workflowOnFailure };
}

function nameOf({ queue, workflowId, idempotencyKey, delaySeconds }: TaskDraft): string {
  const parts = [queue, workflowId, idempotencyKey];
  if (delaySeconds !== undefined) parts.push(`in ${delaySeconds} s`);
  return parts.filter((part) => part !== undefined).join(' ');
}

function cancel(world: World, random: Random): void {
  const server = random.find(world.openServers);
  const halting = endedBadly(world).filter(
    ({ workflow_id, halts_workflow }) => workflow_id !== null && halts_workflow,
  );
  const assigned = world.tasks.tasks.filter(({ status }) => status === 'assigned');
  const rare = random.chance(0.5) ? halting : assigned;
  const taskId = random.chance(0.5)
    ? acknowledgedOf(world, random.find(rare))
    : random.find([...world.ledger.acknowledged]);
  if (server === null || taskId === null) return;
  world.ask({
    what: `cancel ${world.trace.task(taskId)}`,
    server,
    use: (engine) => engine.cancelTask(taskId),
  });
}

function endedBadly({ tasks }: World): Task[] {
  return tasks.tasks.filter(({ status }) => status === 'dead_letter' || status === 'failed');
}

/** Null: whoever submitted it was never told its id. */
function acknowledgedOf(world: World, task: Task | null): TaskId | null {
  return [...world.ledger.acknowledged].find((taskId) => taskId === task?.id) ?? null;
}

function cancelWorkflow(world: World, random: Random): void {
  const server = random.find(world.openServers);
  if (server === null) return;
  const workflowId = `flow-${random.whole(1, 3)}`;
  world.ask({
    what: `cancel ${workflowId}`,
    server,
    use: (engine) => engine.cancelTasks({ workflowId }),
  });
}

function replay(world: World, random: Random): void {
  const server = random.find(world.openServers);
  const cancelled = world.tasks.tasks.filter(({ status }) => status === 'cancelled');
  const chosen = random.find(random.chance(0.5) ? cancelled : endedBadly(world));
  const taskId = acknowledgedOf(world, chosen);
  if (server === null || taskId === null) return;
  world.ask({
    what: `replay ${world.trace.task(taskId)}`,
    server,
    use: (engine) => engine.replayTask(taskId, { newPriority: random.pick(priorities) }),
  });
}

function replayAll(world: World, random: Random): void {
  const server = random.find(world.openServers);
  const queue = random.pick(queueNames);
  if (server === null) return;
  world.ask({
    what: `replay the dead letters of ${queue}`,
    server,
    use: (engine) => engine.replayDeadLetters({ queue }),
  });
}

function change(world: World, random: Random): void {
  const server = random.find(world.openServers);
  const taskId = random.find([...world.ledger.acknowledged]);
  if (server === null || taskId === null) return;
  const priority = random.pick(priorities);
  const runAt = new Date(world.nowMs + random.whole(-2_000, 4_000));
  world.ask({
    what: `change ${world.trace.task(taskId)}`,
    server,
    use: (engine) => engine.changeTask(taskId, random.chance(0.5) ? { priority } : { runAt }),
  });
}

export const taskSteps: readonly Step[] = [
  { name: 'submit', weight: 12, take: submit },
  { name: 'cancel', weight: 5, take: cancel },
  { name: 'cancel a workflow', weight: 0.5, take: cancelWorkflow },
  { name: 'replay', weight: 4, take: replay },
  { name: 'replay dead letters', weight: 0.5, take: replayAll },
  { name: 'change', weight: 2, take: change },
];
