import { hasEnded } from '../../src/domain/task-state.js';
import type { ClaimedTask } from '../../src/protocol/workers-api.js';
import { queueNames, resumeQueue } from './queue-steps.js';
import type { Server } from './server.js';
import type { Task } from './task-book.js';
import { Violation } from './violation.js';
import { SimulatedWorker } from './worker.js';
import { poll, report } from './worker-deeds.js';
import type { World } from './world.js';

const roundMs = 500;
/** Then time is made to leap, which spares the ticks in between. */
const steadyRounds = 30;
const longRounds = 400;
/** Within the lease of who serves: in a longer one another server takes over, and every limit begins anew. */
const leapMs = 2_000;

/**
 * Nothing goes wrong any more, a worker that can do everything does it, and time passes: then every
 * task ends, but for those behind a dead letter that halts their workflow.
 */
export async function drainAll(world: World): Promise<void> {
  world.trace.note('nothing goes wrong any more');
  world.slownessMs = 0;
  for (const server of world.servers) server.db.heal();
  for (const worker of world.workers) worker.die();
  const helper = new SimulatedWorker('helper', { capabilities: ['gpu'] }, 100);
  world.workers.push(helper);
  await untilServing(world);
  const [first] = openOf(world);
  for (const name of queueNames) resumeQueue(world, first, name);
  for (let round = 0; round < steadyRounds + longRounds; round++) {
    if (round >= steadyRounds) await world.freeze(leapMs);
    await world.pass(roundMs);
    work(world, helper);
    await world.check();
    if (openTasks(world).length === 0) {
      await checkIdle(world);
      return;
    }
  }
  await complainOf(world, openTasks(world));
}

async function untilServing(world: World): Promise<void> {
  for (let round = 0; round < steadyRounds; round++) {
    if (world.servers.length === 0) world.launch();
    await world.pass(roundMs);
    if (world.serving !== null) return;
  }
  throw new Violation('somebody serves', 'nobody does, though nothing is wrong');
}

function openOf(world: World): readonly [Server] {
  const { serving } = world;
  if (serving === null) throw new Violation('somebody serves', 'nobody does any more');
  return [serving];
}

function work(world: World, helper: SimulatedWorker): void {
  const { serving } = world;
  if (serving === null || helper.workerId === null) return;
  const done = helper.held.map(({ taskId, lease }) => {
    const word = world.ledger.sign({ taskId, lease, code: null });
    return { taskId, lease, status: 'completed', result: { word } } as const;
  });
  if (done.length > 0) report(world, helper, serving, done);
  if (helper.polls === 0) {
    const request = { availableCapacity: 50, waitMs: 0 };
    poll(world, helper, serving, { request, isLost: false });
  }
}

function openTasks(world: World): readonly Task[] {
  return world.tasks.tasks.filter((task) => !hasEnded(task.status) && !world.tasks.isHalted(task));
}

async function complainOf(world: World, tasks: readonly Task[]): Promise<never> {
  const [task] = tasks;
  const [server] = openOf(world);
  const taskId = task?.id as ClaimedTask['taskId'];
  const explaining = server.call((engine) => engine.explainTask(taskId));
  await world.pass(roundMs);
  const { reasons } = await explaining;
  const why = reasons.map(({ kind, detail }) => `${kind} (${detail})`).join('; ');
  const state = `${task?.status ?? ''} ${task?.waits_for ?? ''}`.trim();
  const detail = `${tasks.length} did not, ${world.trace.task(taskId)} is ${state}: ${why}`;
  throw new Violation('every task ends', detail);
}

async function checkCounts({ stage }: World): Promise<void> {
  const [row] = await stage.db.urgent.query<{ counted: number; active: number }>(
    `select
       (select admitted from sluice.admission where scope = '' order by epoch desc limit 1)
         - sluice.ended_in('') as counted,
       (select count(*) from sluice.tasks where ended_at is null) as active`,
  );
  if (row !== undefined && row.counted === row.active) return;
  const detail = `${row?.active ?? 0} are, and ${row?.counted ?? 0} are counted`;
  throw new Violation('active tasks are counted right', detail);
}

/** Slots and places are given back: nothing runs, so nothing is counted as running. */
async function checkIdle(world: World): Promise<void> {
  await world.pass(2 * roundMs);
  await world.pass(2 * roundMs);
  const [server] = openOf(world);
  for (const name of queueNames) {
    const { running } = await server.ready.live(name);
    if (running === 0) continue;
    throw new Violation('every slot is given back', `${running} seem to run in ${name}`);
  }
  await checkCounts(world);
}
