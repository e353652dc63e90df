import type { WorkerId } from '../../src/domain/ids.js';
import type { SluiceApi } from '../../src/protocol/api.js';
import type { TaskDraft } from '../../src/protocol/tasks-api.js';
import type { ClaimedTask, Report } from '../../src/protocol/workers-api.js';
import type { Lab } from '../shared/lab.js';
import { FuzzedService } from './service.js';

/** What is remembered of names on purpose has limits that two rounds of so many reach. */
export const namesInRound = 10_000;
const rounds = 5;
const workersInRound = 100;
const submittedAtOnce = 1_000;
const takenAtOnce = 50;
/** Nobody beats for the workers. */
const leaseMs = 600_000;

/**
 * Names that come and go: in every round so many queues, task types, users, idempotency keys and error
 * codes that were never used before, each for one task that ends, and workers that leave. Answers what
 * the server keeps in memory after each round.
 */
export async function measureNames(lab: Lab, ready: 'memory' | 'redis'): Promise<number[]> {
  await using service = await FuzzedService.open(lab, { ready, leaseMs });
  const api = service.api();
  const kept: number[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    await submitAll(api, round);
    await runAll(api, round);
    await readAll(service.url(0));
    kept.push(await service.keptMegabytes());
    lab.progress.say(`${ready}: ${round * namesInRound} names, ${Math.round(kept.at(-1) ?? 0)} MB`);
  }
  return kept;
}

async function submitAll(api: SluiceApi, round: number): Promise<void> {
  for (let from = 0; from < namesInRound; from += submittedAtOnce) {
    const outcomes = await api.submitMany(
      Array.from({ length: submittedAtOnce }, (_, n) => draftNamed(`${round}-${from + n}`)),
    );
    if (outcomes.some(({ kind }) => kind === 'refused')) throw new Error('A task was refused');
  }
}

function draftNamed(name: string): TaskDraft {
  return {
    taskType: `type-${name}`,
    queue: `queue-${name}`,
    userId: `user-${name}`,
    idempotencyKey: `key-${name}`,
    maxRetries: 0,
  };
}

async function runAll(api: SluiceApi, round: number): Promise<void> {
  const workers: WorkerId[] = [];
  for (let n = 0; n < workersInRound; n += 1) {
    const { workerId } = await api.register({
      capacity: takenAtOnce,
      name: `worker-${round}-${n}`,
    });
    workers.push(workerId);
  }
  for (let ended = 0, turn = 0; ended < namesInRound; turn += 1) {
    const workerId = workers[turn % workers.length];
    if (workerId === undefined) throw new Error('There are no workers');
    const poll = { availableCapacity: takenAtOnce, waitMs: 5_000 };
    const { tasks } = await api.poll(workerId, poll);
    if (tasks.length > 0) await api.report(workerId, tasks.map(reportOf));
    ended += tasks.length;
  }
  for (const workerId of workers) await api.deregister(workerId);
}

/** Each fourth fails, with a code of its own. */
function reportOf({ taskId, lease, queue }: ClaimedTask, place: number): Report {
  if (place % 4 !== 0) return { taskId, lease, status: 'completed', result: null };
  const error = { code: `CODE-${queue}`, message: 'It failed', retriable: false };
  return { taskId, lease, status: 'failed', error };
}

/** Whoever looks at all of them must not make them be kept. */
async function readAll(url: string): Promise<void> {
  for (const path of [
    '/metrics',
    '/api/v1/queue/stats',
    '/api/v1/scaling',
    '/api/v1/dlq/analysis',
  ]) {
    const answer = await fetch(`${url}${path}`);
    if (!answer.ok) throw new Error(`${path} was answered with ${answer.status}`);
    await answer.text();
  }
}
