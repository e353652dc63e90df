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
  listedTaskFromWire,
  listedTaskToWire,
  replayFields,
  replayFromWire,
} from './tasks-wire.js';

type FilterWire = Pick<ReplayDeadLettersWire, 'queue' | 'task_type' | 'code' | 'since' | 'until'>;

export function deadLetterFilterFromWire(wire: FilterWire): DeadLetterFilter {
  return defined({
    queue: wire.queue,
    taskType: wire.task_type,
    code: wire.code,
    since: wire.since === undefined ? undefined : timestampFromWire(wire.since),
    until: wire.until === undefined ? undefined : timestampFromWire(wire.until),
  });
}

export const deadLetterFilterFields = {
  queue: 'queue',
  taskType: 'task_type',
  code: 'code',
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
  return {
    items: wire.items.map(listedTaskFromWire),
    nextCursor: wire.next_cursor,
    totalCount: wire.total_count,
  };
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

export function deadLetterReplayFromWire(wire: ReplayDeadLettersWire): DeadLetterReplay {
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
      queue: pattern.queue,
      task_type: pattern.taskType,
      code: pattern.code,
      count: pattern.count,
      first_seen: timestampToWire(pattern.firstSeen),
      last_seen: timestampToWire(pattern.lastSeen),
      retriable: pattern.retriable,
      example: { task_id: pattern.example.taskId, message: pattern.example.message },
    })),
  };
}

export function deadLetterAnalysisFromWire(
  wire: DeadLetterAnalysisWire,
): readonly DeadLetterPattern[] {
  return wire.patterns.map((pattern) => ({
    queue: pattern.queue,
    taskType: pattern.task_type,
    code: pattern.code,
    count: pattern.count,
    firstSeen: timestampFromWire(pattern.first_seen),
    lastSeen: timestampFromWire(pattern.last_seen),
    retriable: pattern.retriable,
    example: { taskId: taskIdFromWire(pattern.example.task_id), message: pattern.example.message },
  }));
}
