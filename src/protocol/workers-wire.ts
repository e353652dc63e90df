import type { Lease, TaskId } from '../domain/ids.js';
import { bounds } from './bounds.js';
import {
  taskIdFromWire,
  timestampFromWire,
  timestampToWire,
  workerIdFromWire,
} from './common-wire.js';
import { defined } from './defined.js';
import { writeRequest, type FieldsOf } from './fields.js';
import { findJsonFault } from './json-measure.js';
import type { Page } from './page.js';
import { invalidField } from './problem-wire.js';
import { definitionFields, definitionFromWire } from './task-types-wire.js';
import type {
  ClaimedTask,
  Heartbeat,
  HeartbeatAnswer,
  Held,
  PollAnswer,
  PollRequest,
  Registered,
  Registration,
  WorkerDetail,
  WorkerOffer,
  WorkerView,
} from './workers-api.js';
import type {
  ClaimedTaskWire,
  HeartbeatAnswerWire,
  HeartbeatWire,
  HeldWire,
  PollAnswerWire,
  PollWire,
  RegisteredWire,
  RegistrationWire,
  WorkerDetailWire,
  WorkerPageWire,
  WorkerWire,
} from './workers-schema.js';

export function registrationFromWire(wire: RegistrationWire): Registration {
  return defined({
    capabilities: wire.capabilities,
    taskTypes: wire.task_types,
    queues: wire.queues,
    capacity: wire.capacity,
    name: wire.name,
    host: wire.host,
    version: wire.version,
    definitions: wire.definitions?.map(definitionFromWire),
  });
}

export const registrationFields = {
  capabilities: 'capabilities',
  taskTypes: 'task_types',
  queues: 'queues',
  capacity: 'capacity',
  name: 'name',
  host: 'host',
  version: 'version',
  definitions: { wire: 'definitions', items: definitionFields },
} as const satisfies FieldsOf<Omit<Registration, 'within' | 'owner'>>;

export function registrationToWire(registration: Registration): RegistrationWire {
  return writeRequest(registrationFields, registration) as RegistrationWire;
}

function offerToWire(offer: WorkerOffer): Pick<PollWire, 'capabilities' | 'task_types' | 'queues'> {
  return defined({
    capabilities: offer.capabilities?.slice(),
    task_types: offer.taskTypes?.slice(),
    queues: offer.queues?.slice(),
  });
}

export function registeredToWire(registered: Registered): RegisteredWire {
  return {
    worker_id: registered.workerId,
    heartbeat_interval_ms: registered.heartbeatIntervalMs,
    lease_ms: registered.leaseMs,
    poll_wait_seconds: registered.pollWaitSeconds,
    ...(registered.notes === undefined ? {} : { notes: registered.notes.slice() }),
  };
}

export function registeredFromWire(wire: RegisteredWire): Registered {
  return {
    workerId: workerIdFromWire(wire.worker_id),
    heartbeatIntervalMs: wire.heartbeat_interval_ms,
    leaseMs: wire.lease_ms,
    pollWaitSeconds: wire.poll_wait_seconds,
    ...(wire.notes === undefined ? {} : { notes: wire.notes }),
  };
}

export function pollFromWire(wire: PollWire): PollRequest {
  return defined({
    availableCapacity: wire.available_capacity,
    waitMs: wire.wait_seconds === undefined ? undefined : wire.wait_seconds * 1000,
    prefetch: wire.prefetch,
    capabilities: wire.capabilities,
    taskTypes: wire.task_types,
    queues: wire.queues,
  });
}

export function pollToWire(request: PollRequest): PollWire {
  return defined({
    available_capacity: request.availableCapacity,
    wait_seconds: request.waitMs === undefined ? undefined : request.waitMs / 1000,
    prefetch: request.prefetch,
    ...offerToWire(request),
  });
}

export function pollAnswerToWire(answer: PollAnswer): PollAnswerWire {
  return {
    tasks: answer.tasks.map(claimedTaskToWire),
    cancelled: answer.cancelled.slice(),
    drain: answer.drain,
  };
}

export function pollAnswerFromWire(wire: PollAnswerWire): PollAnswer {
  return {
    tasks: wire.tasks.map(claimedTaskFromWire),
    cancelled: wire.cancelled.map(taskIdFromWire),
    drain: wire.drain,
  };
}

function claimedTaskToWire(task: ClaimedTask): ClaimedTaskWire {
  return {
    task_id: task.taskId,
    task_type: task.taskType,
    queue: task.queue,
    parameters: task.parameters,
    timeout_seconds: task.timeoutSeconds,
    attempt: task.attempt,
    lease: task.lease,
    priority: task.priority,
    effective_priority: task.effectivePriority,
    retry_count: task.retryCount,
    workflow_id: task.workflowId,
    trace_id: task.traceId,
    ...(task.traceparent === null ? {} : { traceparent: task.traceparent }),
    deadline: timestampToWire(task.deadline),
    waited_seconds: task.waitedSeconds,
  };
}

function claimedTaskFromWire(wire: ClaimedTaskWire): ClaimedTask {
  return {
    taskId: taskIdFromWire(wire.task_id),
    taskType: wire.task_type,
    queue: wire.queue,
    parameters: wire.parameters,
    timeoutSeconds: wire.timeout_seconds,
    attempt: wire.attempt,
    lease: wire.lease as Lease,
    priority: wire.priority,
    effectivePriority: wire.effective_priority,
    retryCount: wire.retry_count,
    workflowId: wire.workflow_id,
    traceId: wire.trace_id,
    traceparent: wire.traceparent ?? null,
    deadline: timestampFromWire(wire.deadline),
    waitedSeconds: wire.waited_seconds,
  };
}

export function heldFromWire(wire: HeldWire): Held {
  return { taskId: taskIdFromWire(wire.task_id), lease: wire.lease.toLowerCase() as Lease };
}

export function heldToWire(held: Held): HeldWire {
  return { task_id: held.taskId, lease: held.lease };
}

export function releasedToWire(answer: {
  readonly released: readonly TaskId[];
  readonly lost: readonly TaskId[];
}): { released: string[]; lost: string[] } {
  return { released: answer.released.slice(), lost: answer.lost.slice() };
}

export function heartbeatFromWire(wire: HeartbeatWire): Heartbeat {
  if (findJsonFault(wire.health, bounds.taskBytes) !== null) {
    throw invalidField(
      '/health',
      `must be at most ${bounds.taskBytes} bytes and ${bounds.jsonDepth} levels of JSON`,
    );
  }
  if (wire.leases !== undefined && wire.leases.length !== wire.current_tasks?.length) {
    throw invalidField('/leases', 'must be as many as current_tasks');
  }
  return defined({
    currentLoad: wire.current_load,
    status: wire.status,
    currentTasks: wire.current_tasks?.map(taskIdFromWire),
    leases: wire.leases?.map((lease) => lease.toLowerCase() as Lease),
    undelivered: wire.undelivered?.map(taskIdFromWire),
    availableCapacity: wire.available_capacity,
    maxCapacity: wire.max_capacity,
    memoryUsage: wire.memory_usage,
    eventLoopDelayMs: wire.event_loop_delay_ms,
    cpuUsage: wire.cpu_usage,
    consecutiveFailures: wire.consecutive_failures,
    health: wire.health,
  });
}

export function heartbeatToWire(beat: Heartbeat): HeartbeatWire {
  return defined({
    current_load: beat.currentLoad,
    status: beat.status,
    current_tasks: beat.currentTasks?.slice(),
    leases: beat.leases?.slice(),
    undelivered: beat.undelivered?.slice(),
    available_capacity: beat.availableCapacity,
    max_capacity: beat.maxCapacity,
    memory_usage: beat.memoryUsage,
    event_loop_delay_ms: beat.eventLoopDelayMs,
    cpu_usage: beat.cpuUsage,
    consecutive_failures: beat.consecutiveFailures,
    health: beat.health,
  });
}

export function heartbeatAnswerToWire(answer: HeartbeatAnswer): HeartbeatAnswerWire {
  return {
    acknowledged: true,
    should_drain: answer.shouldDrain,
    cancelled: answer.cancelled.slice(),
    lost: answer.lost.slice(),
  };
}

export function heartbeatAnswerFromWire(wire: HeartbeatAnswerWire): HeartbeatAnswer {
  return {
    shouldDrain: wire.should_drain,
    cancelled: wire.cancelled.map(taskIdFromWire),
    lost: wire.lost.map(taskIdFromWire),
  };
}

export function workerToWire(worker: WorkerView): WorkerWire {
  return {
    worker_id: worker.workerId,
    name: worker.name,
    host: worker.host,
    version: worker.version,
    status: worker.status,
    capabilities: worker.capabilities.slice(),
    task_types: worker.taskTypes?.slice() ?? null,
    queues: worker.queues?.slice() ?? null,
    capacity: worker.capacity,
    current_load: worker.currentLoad,
    available_capacity: worker.availableCapacity,
    memory_usage: worker.memoryUsage,
    event_loop_delay_ms: worker.eventLoopDelayMs,
    cpu_usage: worker.cpuUsage,
    consecutive_failures: worker.consecutiveFailures,
    drain_requested_at: timeOrNullToWire(worker.drainRequestedAt),
    registered_at: timestampToWire(worker.registeredAt),
    last_heartbeat_at: timestampToWire(worker.lastHeartbeatAt),
    benched_until: timeOrNullToWire(worker.benchedUntil),
  };
}

export function workerDetailToWire(worker: WorkerDetail): WorkerDetailWire {
  return {
    ...workerToWire(worker),
    current_tasks: worker.currentTasks.slice(),
    health: worker.health,
  };
}

export function workerDetailFromWire(wire: WorkerDetailWire): WorkerDetail {
  return {
    ...workerFromWire(wire),
    currentTasks: wire.current_tasks.map(taskIdFromWire),
    health: wire.health,
  };
}

function timeOrNullToWire(time: Date | null): string | null {
  return time === null ? null : timestampToWire(time);
}

function timeOrNullFromWire(time: string | null): Date | null {
  return time === null ? null : timestampFromWire(time);
}

export function workerFromWire(wire: WorkerWire): WorkerView {
  return {
    workerId: workerIdFromWire(wire.worker_id),
    name: wire.name,
    host: wire.host,
    version: wire.version,
    status: wire.status,
    capabilities: wire.capabilities,
    taskTypes: wire.task_types,
    queues: wire.queues,
    capacity: wire.capacity,
    currentLoad: wire.current_load,
    availableCapacity: wire.available_capacity,
    memoryUsage: wire.memory_usage,
    eventLoopDelayMs: wire.event_loop_delay_ms,
    cpuUsage: wire.cpu_usage,
    consecutiveFailures: wire.consecutive_failures,
    drainRequestedAt: timeOrNullFromWire(wire.drain_requested_at),
    registeredAt: timestampFromWire(wire.registered_at),
    lastHeartbeatAt: timestampFromWire(wire.last_heartbeat_at),
    benchedUntil: timeOrNullFromWire(wire.benched_until),
  };
}

export function workerPageToWire(page: Page<WorkerView>): WorkerPageWire {
  return { items: page.items.map(workerToWire), next_cursor: page.nextCursor };
}

export function workerPageFromWire(wire: WorkerPageWire): Page<WorkerView> {
  return { items: wire.items.map(workerFromWire), nextCursor: wire.next_cursor };
}
