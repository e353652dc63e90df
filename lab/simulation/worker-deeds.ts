import type { Lease, TaskId, WorkerId } from '../../src/domain/ids.js';
import type {
  ClaimedTask,
  Held,
  PollRequest,
  Report,
  ReportAnswer,
} from '../../src/protocol/workers-api.js';
import type { Delivered } from './ledger.js';
import type { Server } from './server.js';
import { simulatedSettings } from './server.js';
import { Violation } from './violation.js';
import type { SimulatedWorker } from './worker.js';
import type { World } from './world.js';

export function register(world: World, worker: SimulatedWorker, server: Server): void {
  if (worker.isRegistering) return;
  worker.isRegistering = true;
  const { offer, capacity, name } = worker;
  const beganMs = world.nowMs;
  world.ask({
    what: `${name} registers`,
    server,
    use: (engine) => engine.register({ ...offer, capacity, name }),
    heard: ({ workerId }) => {
      worker.isRegistering = false;
      worker.workerId = workerId;
      worker.lastBeatMs = beganMs;
      world.ledger.heardMs.set(workerId, beganMs);
      world.trace.note(`  ${name} is ${world.trace.worker(workerId)}`);
    },
    refused: () => {
      worker.isRegistering = false;
    },
  });
}

export interface Polling {
  readonly request: PollRequest;
  /** The answer never arrives. */
  readonly isLost: boolean;
}

export function poll(
  world: World,
  worker: SimulatedWorker,
  server: Server,
  { request, isLost }: Polling,
): void {
  const { workerId, name } = worker;
  if (workerId === null) return;
  worker.polls += 1;
  world.ask({
    what: `${name} polls for ${request.availableCapacity}`,
    server,
    use: (engine) => engine.poll(workerId, request),
    heard: ({ tasks, cancelled, drain }) => {
      worker.polls -= 1;
      const names = tasks.map(({ taskId }) => world.trace.task(taskId)).join(' ');
      const fate = isLost ? ' (lost on the way)' : drain ? ' (and drains)' : '';
      world.trace.note(`  ${name} gets [${names}]${fate}`);
      const isThere = !isLost && !worker.isDead;
      for (const task of tasks) {
        const delivered = deliveredOf(world, workerId, server, task);
        noteDelivery(world, delivered);
        if (isThere) worker.hold(delivered);
        else delivered.hasLetGo = true;
      }
      if (isThere) worker.letGoOfTasks(cancelled);
    },
    refused: (code) => {
      worker.polls -= 1;
      if (code === 'worker_unknown' && worker.workerId === workerId) worker.workerId = null;
    },
  });
}

function deliveredOf(
  world: World,
  workerId: WorkerId,
  { ready }: Server,
  { taskId, lease, queue, deadline }: ClaimedTask,
): Delivered {
  return {
    taskId,
    lease,
    queue,
    workerId,
    cost: world.ledger.costOf.get(taskId) ?? 0,
    takenMs: ready.takenMs.get(taskId) ?? world.nowMs,
    deadlineMs: deadline.getTime(),
    hasLetGo: false,
  };
}

function noteDelivery(world: World, delivered: Delivered): void {
  const { taskId, lease } = delivered;
  if (world.ledger.delivered.has(lease)) {
    throw new Violation('a lease goes to one worker', world.trace.task(taskId));
  }
  world.ledger.delivered.set(lease, delivered);
  world.afterwards(() => {
    if (!world.tasks.wasGiven(lease)) {
      throw new Violation('commit first, then tell', `${world.trace.task(taskId)} was not claimed`);
    }
    world.rules.deliver(delivered);
  });
}

const { heartbeatIntervalMs } = simulatedSettings;

export function beatIfDue(world: World, worker: SimulatedWorker): void {
  if (worker.isSilent || worker.isDead) return;
  if (world.nowMs - worker.lastBeatMs < heartbeatIntervalMs) return;
  const [server] = world.openServers;
  if (server === undefined) return;
  worker.lastBeatMs = world.nowMs;
  if (worker.workerId === null) register(world, worker, server);
  else beat(world, worker, server, worker.held);
}

/** `named`: what it says that it holds; undefined: it says nothing about that. */
export function beat(
  world: World,
  worker: SimulatedWorker,
  server: Server,
  named: readonly Held[] | undefined,
): void {
  const { workerId, name } = worker;
  if (workerId === null) return;
  const beganMs = world.nowMs;
  const status = 'active' as const;
  const load = { currentLoad: worker.held.length, status };
  world.ask({
    what: `${name} beats`,
    server,
    use: (engine) =>
      engine.heartbeat(workerId, named === undefined ? load : { ...load, ...namesOf(named) }),
    heard: ({ cancelled, lost }) => {
      world.ledger.heardMs.set(workerId, beganMs);
      worker.letGoOfTasks([...cancelled, ...lost]);
    },
    refused: (code) => {
      if (code === 'worker_unknown' && worker.workerId === workerId) worker.workerId = null;
    },
  });
}

function namesOf(held: readonly Held[]) {
  return {
    currentTasks: held.map(({ taskId }) => taskId),
    leases: held.map(({ lease }) => lease),
  };
}

/** Says how it went, also with leases that are long gone. */
export function report(
  world: World,
  worker: SimulatedWorker,
  server: Server,
  reports: readonly Report[],
): void {
  const { workerId, name } = worker;
  if (workerId === null) return;
  const words = reports.map(({ taskId, status }) => `${world.trace.task(taskId)} ${status}`);
  letGoOf(world, worker, reports);
  world.ask({
    what: `${name} reports ${words.join(', ')}`,
    server,
    use: (engine) => engine.report(workerId, reports),
    heard: (answers) => {
      const said = answers.map((one) => (one.accepted ? one.status : one.reason));
      world.trace.note(`  ${name} is told ${said.join(', ')}`);
      answers.forEach((answer, index) => {
        const made = reports[index];
        if (made !== undefined) world.afterwards(() => checkAnswer(world, made, answer));
      });
    },
    // It keeps what it could not tell, and tells it again.
    refused: () => {
      for (const { lease } of reports) {
        const delivered = world.ledger.delivered.get(lease);
        if (delivered !== undefined && !worker.isDead) worker.hold(delivered);
      }
    },
  });
}

function checkAnswer(world: World, { lease, taskId, status }: Report, answer: ReportAnswer): void {
  if (world.tasks.isLive(lease)) {
    const how = answer.accepted ? 'accepted and not written' : 'refused with a good lease';
    throw new Violation('a report is taken exactly when its lease is good', `${how}: ${status}`);
  }
  if (!answer.accepted || answer.status !== 'completed') return;
  const task = world.tasks.find(taskId);
  if (task?.status === 'completed' && task.lease === lease) return;
  throw new Violation('accepted means completed', world.trace.task(taskId));
}

export function release(
  world: World,
  worker: SimulatedWorker,
  server: Server,
  held: readonly Delivered[],
): void {
  const { workerId, name } = worker;
  if (workerId === null || held.length === 0) return;
  letGoOf(world, worker, held);
  const names = held.map(({ taskId }) => world.trace.task(taskId)).join(' ');
  world.ask({
    what: `${name} releases ${names}`,
    server,
    use: (engine) => engine.release(workerId, held),
    heard: ({ released, lost }) => {
      world.trace.note(`  ${name}: ${released.length} released, ${lost.length} lost`);
      world.afterwards(() => {
        for (const { lease, taskId } of held) checkEnded(world, lease, taskId);
      });
    },
  });
}

function checkEnded(world: World, lease: Lease, taskId: TaskId): void {
  if (!world.tasks.isLive(lease)) return;
  throw new Violation('what was released is not held', world.trace.task(taskId));
}

export function start(
  world: World,
  worker: SimulatedWorker,
  server: Server,
  { taskId, lease }: Delivered,
): void {
  const { workerId, name } = worker;
  if (workerId === null) return;
  world.ask({
    what: `${name} starts ${world.trace.task(taskId)}`,
    server,
    use: (engine) => engine.start(workerId, { taskId, lease }),
    refused: (code) => {
      if (code === 'lease_lost') lostLease(world, worker, lease, taskId);
    },
  });
}

export function progress(
  world: World,
  worker: SimulatedWorker,
  server: Server,
  { taskId, lease }: Delivered,
): void {
  const { workerId, name } = worker;
  if (workerId === null) return;
  world.ask({
    what: `${name} is half through ${world.trace.task(taskId)}`,
    server,
    use: (engine) =>
      engine.progress(workerId, { taskId, lease }, { percent: 50, message: `by ${lease}` }),
    refused: (code) => {
      if (code === 'lease_lost') lostLease(world, worker, lease, taskId);
    },
  });
}

function lostLease(world: World, worker: SimulatedWorker, lease: Lease, taskId: TaskId): void {
  worker.letGo(lease);
  world.afterwards(() => {
    if (!world.tasks.isLive(lease)) return;
    throw new Violation('a good lease is not refused', world.trace.task(taskId));
  });
}

/** A lease is its attempt, whoever tells of it. */
function letGoOf(
  world: World,
  worker: SimulatedWorker,
  told: readonly Pick<Delivered, 'lease'>[],
): void {
  for (const { lease } of told) {
    worker.letGo(lease);
    const delivered = world.ledger.delivered.get(lease);
    if (delivered !== undefined) delivered.hasLetGo = true;
  }
}
