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
import {
  listedTaskFromWire,
  listedTaskToWire,
  replayFromWire,
  replayToWire,
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

export function deadLetterFilterToWire(filter: DeadLetterFilter): FilterWire {
  return defined({
    queue: filter.queue,
    task_type: filter.taskType,
    code: filter.code,
    since: filter.since === undefined ? undefined : timestampToWire(filter.since),
    until: filter.until === undefined ? undefined : timestampToWire(filter.until),
  });
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

export function replayDeadLettersToWire(
  filter: DeadLetterFilter,
  request: DeadLetterReplay,
): ReplayDeadLettersWire {
  const { perSecond, cursor } = request;
  return {
    ...deadLetterFilterToWire(filter),
    ...replayToWire(request),
    ...defined({ per_second: perSecond, cursor }),
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
