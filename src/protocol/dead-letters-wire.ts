import {
  taskIdFromWire,
  timestampFromWire,
  timestampOrNullFromWire,
  timestampOrNullToWire,
  timestampToWire,
} from './common-wire.js';
import type {
  DeadLetterFilter,
  DeadLetterPage,
  DeadLetterPattern,
  DeadLetterReplay,
  ReplayedDeadLetters,
} from './dead-letters-api.js';
import type {
  DeadLetterAnalysisWire,
  DeadLetterPageWire,
  ReplayDeadLettersWire,
  ReplayedWire,
} from './dead-letters-schema.js';
import { defined } from './defined.js';
import { timestampFieldToWire, writeRequest, type FieldsOf } from './fields.js';
import {
  listedTasksFromWire,
  listedTaskToWire,
  replayFields,
  replayFromWire,
} from './tasks-wire.js';

type FilterWire = Pick<
  ReplayDeadLettersWire,
  'queue' | 'task_type' | 'code' | 'pattern' | 'since' | 'until'
>;

type ReplayWire = Pick<
  ReplayDeadLettersWire,
  'reset_retry_count' | 'new_priority' | 'per_second' | 'cursor'
>;

export function deadLetterFilterFromWire(wire: FilterWire): DeadLetterFilter {
  return defined({
    queue: wire.queue,
    taskType: wire.task_type,
    code: wire.code,
    pattern: wire.pattern,
    since: wire.since === undefined ? undefined : timestampFromWire(wire.since),
    until: wire.until === undefined ? undefined : timestampFromWire(wire.until),
  });
}

export const deadLetterFilterFields = {
  queue: 'queue',
  taskType: 'task_type',
  code: 'code',
  pattern: 'pattern',
  since: { wire: 'since', write: timestampFieldToWire },
  until: { wire: 'until', write: timestampFieldToWire },
} as const satisfies FieldsOf<Omit<DeadLetterFilter, 'within'>>;

export function deadLetterFilterToWire(filter: DeadLetterFilter): FilterWire {
  return writeRequest(deadLetterFilterFields, filter) as FilterWire;
}

export function deadLetterPageToWire(page: DeadLetterPage): DeadLetterPageWire {
  return {
    items: page.items.map(listedTaskToWire),
    next_cursor: page.nextCursor,
    total_count: page.totalCount,
  };
}

export function deadLetterPageFromWire(wire: DeadLetterPageWire): DeadLetterPage {
  return { ...listedTasksFromWire(wire), totalCount: wire.total_count };
}

export const deadLetterReplayFields = {
  ...replayFields,
  perSecond: 'per_second',
  cursor: 'cursor',
} as const satisfies FieldsOf<DeadLetterReplay>;

export function replayDeadLettersToWire(
  filter: DeadLetterFilter,
  request: DeadLetterReplay,
): ReplayDeadLettersWire {
  return {
    ...deadLetterFilterToWire(filter),
    ...(writeRequest(deadLetterReplayFields, request) as ReplayDeadLettersWire),
  };
}

export function deadLetterReplayFromWire(wire: ReplayWire): DeadLetterReplay {
  const { per_second: perSecond, cursor } = wire;
  return { ...replayFromWire(wire), ...defined({ perSecond, cursor }) };
}

export function replayedToWire(replayed: ReplayedDeadLetters): ReplayedWire {
  return {
    replayed: replayed.replayed,
    last_due_at: timestampOrNullToWire(replayed.lastDueAt),
    next_cursor: replayed.nextCursor,
  };
}

export function replayedFromWire(wire: ReplayedWire): ReplayedDeadLetters {
  return {
    replayed: wire.replayed,
    lastDueAt: timestampOrNullFromWire(wire.last_due_at),
    nextCursor: wire.next_cursor,
  };
}

export function deadLetterAnalysisToWire(
  patterns: readonly DeadLetterPattern[],
): DeadLetterAnalysisWire {
  return {
    patterns: patterns.map((pattern) => ({
      id: pattern.id,
      task_type: pattern.taskType,
      code: pattern.code,
      message: pattern.message,
      count: pattern.count,
      queues: [...pattern.queues],
      queue_count: pattern.queueCount,
      hourly: [...pattern.hourly],
      first_seen: timestampToWire(pattern.firstSeen),
      last_seen: timestampToWire(pattern.lastSeen),
      retriable_share: pattern.retriableShare,
      example: { task_id: pattern.example.taskId, message: pattern.example.message },
    })),
  };
}

export function deadLetterAnalysisFromWire(
  wire: DeadLetterAnalysisWire,
): readonly DeadLetterPattern[] {
  return wire.patterns.map(
    ({
      task_type: taskType,
      queue_count: queueCount,
      first_seen: firstSeen,
      last_seen: lastSeen,
      retriable_share: retriableShare,
      example,
      ...pattern
    }) => ({
      ...pattern,
      taskType,
      queueCount,
      firstSeen: timestampFromWire(firstSeen),
      lastSeen: timestampFromWire(lastSeen),
      retriableShare,
      example: { taskId: taskIdFromWire(example.task_id), message: example.message },
    }),
  );
}
