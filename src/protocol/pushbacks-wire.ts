import {
  taskIdFromWire,
  timestampFromWire,
  timestampOrNullFromWire,
  timestampOrNullToWire,
  timestampToWire,
  workerIdFromWire,
} from './common-wire.js';
import type { Page } from './page.js';
import type { Pushback } from './pushbacks-api.js';
import type { PushbackPageWire, PushbackWire } from './pushbacks-schema.js';

export function pushbackPageToWire({ items, nextCursor }: Page<Pushback>): PushbackPageWire {
  return { items: items.map(toWire), next_cursor: nextCursor };
}

export function pushbackPageFromWire(wire: PushbackPageWire): Page<Pushback> {
  return { items: wire.items.map(fromWire), nextCursor: wire.next_cursor };
}

function toWire(pushback: Pushback): PushbackWire {
  const { queue, code, message, answers, became } = pushback;
  return {
    at: timestampToWire(pushback.at),
    queue,
    task_id: pushback.taskId,
    task_type: pushback.taskType,
    worker_id: pushback.workerId,
    code,
    message,
    retry_after_ms: pushback.retryAfterMs,
    answers,
    became,
    until: timestampOrNullToWire(pushback.until),
  };
}

function fromWire(wire: PushbackWire): Pushback {
  const { queue, code, message, answers, became } = wire;
  return {
    at: timestampFromWire(wire.at),
    queue,
    taskId: taskIdFromWire(wire.task_id),
    taskType: wire.task_type,
    workerId: workerIdFromWire(wire.worker_id),
    code,
    message,
    retryAfterMs: wire.retry_after_ms,
    answers,
    became,
    until: timestampOrNullFromWire(wire.until),
  };
}
