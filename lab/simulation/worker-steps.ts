import type { AttemptError } from '../../src/domain/attempt-error.js';
import type { PollRequest, Report } from '../../src/protocol/workers-api.js';
import type { Delivered } from './ledger.js';
import type { Random } from './random.js';
import type { Server } from './server.js';
import type { Step } from './steps.js';
import { SimulatedWorker } from './worker.js';
import { beat, poll, progress, release, report, start } from './worker-deeds.js';
import type { World } from './world.js';

const mostWorkers = 5;
const mostPolls = 2;

export function hire(world: World, random: Random): void {
  if (world.workers.filter(({ isDead }) => !isDead).length >= mostWorkers) return;
  const offer = {
    capabilities: random.chance(0.5) ? ['gpu'] : [],
    ...(random.chance(0.3) ? { taskTypes: [random.pick(['a', 'b'])] } : {}),
    ...(random.chance(0.2) ? { queues: ['plain', 'tokens'] } : {}),
  };
  const name = `worker-${world.workers.length + 1}`;
  world.workers.push(new SimulatedWorker(name, offer, random.whole(1, 6)));
}

function living(world: World, random: Random): SimulatedWorker | null {
  return random.find(world.workers.filter(({ isDead, workerId }) => !isDead && workerId !== null));
}

/** Rather one that holds something. */
function busy(world: World, random: Random): SimulatedWorker | null {
  const holding = world.workers.filter(
    ({ held, workerId }) => held.length > 0 && workerId !== null,
  );
  return random.find(holding) ?? living(world, random);
}

/** Polls are mostly sent to the one that serves. */
function serverFor(world: World, random: Random): Server | null {
  return random.chance(0.9) && world.serving !== null
    ? world.serving
    : random.find(world.openServers);
}

function pollOnce(world: World, random: Random): void {
  const worker = living(world, random);
  const server = serverFor(world, random);
  if (worker === null || server === null || worker.polls >= mostPolls) return;
  const request: PollRequest = {
    availableCapacity: Math.min(worker.freeSlots, random.whole(1, 5)),
    waitMs: random.chance(0.5) ? 0 : random.whole(100, 3_000),
    prefetch: random.chance(0.3),
  };
  poll(world, worker, server, { request, isLost: random.chance(0.05) });
}

function withOne(
  deed: (world: World, worker: SimulatedWorker, server: Server, one: Delivered) => void,
): Step['take'] {
  return (world, random) => {
    const worker = busy(world, random);
    const server = random.find(world.openServers);
    const one = worker === null ? null : random.find(worker.held);
    if (worker !== null && server !== null && one !== null) deed(world, worker, server, one);
  };
}

/** Mostly what it holds; now and then something that it held long ago. */
function someOf(world: World, worker: SimulatedWorker, random: Random): readonly Delivered[] {
  if (!random.chance(0.1)) return worker.held.slice(0, random.whole(1, 4));
  const once = random.find([...world.ledger.delivered.values()]);
  return once === null ? [] : [once];
}

function complete(world: World, random: Random): void {
  finish(world, random, ({ taskId, lease }) => {
    const word = world.ledger.sign({ taskId, lease, code: null });
    return { taskId, lease, status: 'completed', result: { word } };
  });
}

const failures: readonly [Omit<AttemptError, 'message'>, ...Omit<AttemptError, 'message'>[]] = [
  { code: 'BROKEN', retriable: true },
  { code: 'BROKEN', retriable: true },
  { code: 'BROKEN', retriable: false },
  { code: 'INVALID_INPUT', retriable: true },
  { code: 'TIMEOUT', retriable: true },
  { code: 'UNAVAILABLE', retriable: true },
  { code: 'RATE_LIMITED', retriable: true },
  { code: 'RATE_LIMITED', retriable: true, retryAfterSeconds: 2 },
];

function fail(world: World, random: Random): void {
  finish(world, random, ({ taskId, lease }) => {
    const failure = random.pick(failures);
    const message = world.ledger.sign({ taskId, lease, code: failure.code });
    return { taskId, lease, status: 'failed', error: { ...failure, message } };
  });
}

function finish(world: World, random: Random, toReport: (one: Delivered) => Report): void {
  const worker = busy(world, random);
  const server = random.find(world.openServers);
  if (worker === null || server === null) return;
  const reports = someOf(world, worker, random).map(toReport);
  if (reports.length > 0) report(world, worker, server, reports);
}

function releaseSome(world: World, random: Random): void {
  const worker = busy(world, random);
  const server = random.find(world.openServers);
  if (worker === null || server === null) return;
  release(world, worker, server, someOf(world, worker, random));
}

/** It has forgotten what it holds, or says nothing of it. */
function beatWrongly(world: World, random: Random): void {
  const worker = living(world, random);
  const server = random.find(world.openServers);
  if (worker === null || server === null) return;
  if (random.chance(0.5)) {
    beat(world, worker, server, undefined);
    return;
  }
  const forgotten = random.find(worker.held);
  if (forgotten !== null) worker.letGo(forgotten.lease);
  beat(world, worker, server, worker.held);
}

function fallSilent(world: World, random: Random): void {
  const worker = living(world, random);
  if (worker === null) return;
  worker.isSilent = !worker.isSilent;
  world.trace.note(`  ${worker.name} ${worker.isSilent ? 'falls silent' : 'is back'}`);
}

function die(world: World, random: Random): void {
  const worker = living(world, random);
  if (worker === null) return;
  worker.die();
  world.trace.note(`  ${worker.name} dies`);
}

function leave(world: World, random: Random): void {
  const worker = living(world, random);
  const server = random.find(world.openServers);
  const workerId = worker?.workerId ?? null;
  if (worker === null || server === null || workerId === null) return;
  worker.die();
  world.ledger.heardMs.delete(workerId);
  world.ask({
    what: `${worker.name} leaves`,
    server,
    use: (engine) => engine.deregister(workerId),
  });
}

function drain(world: World, random: Random): void {
  const worker = living(world, random);
  const server = random.find(world.openServers);
  const workerId = worker?.workerId ?? null;
  if (worker === null || server === null || workerId === null) return;
  world.ask({
    what: `drain ${worker.name}`,
    server,
    use: (engine) => engine.drainWorker(workerId),
  });
}

export const workerSteps: readonly Step[] = [
  { name: 'hire', weight: 4, take: hire },
  { name: 'poll', weight: 24, take: pollOnce },
  { name: 'start', weight: 6, take: withOne(start) },
  { name: 'progress', weight: 3, take: withOne(progress) },
  { name: 'complete', weight: 12, take: complete },
  { name: 'fail', weight: 9, take: fail },
  { name: 'release', weight: 3, take: releaseSome },
  { name: 'beat wrongly', weight: 2, take: beatWrongly },
  { name: 'silence', weight: 2, take: fallSilent },
  { name: 'die', weight: 1, take: die },
  { name: 'leave', weight: 1, take: leave },
  { name: 'drain', weight: 0.5, take: drain },
];
