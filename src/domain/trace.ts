import type { TaskId } from './ids.js';

/** What a submit says of its trace. */
export interface GivenTrace {
  /** Any text. */
  readonly traceId?: string | undefined;
  /** As `checkedTraceparent` answers it. */
  readonly traceparent?: string | undefined;
}

export interface Trace {
  readonly traceId: string;
  /** W3C trace context with the span that submitted the task. Null: the submit named none. */
  readonly traceparent: string | null;
}

const parts = '([0-9a-f]{2})-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})';
const traceparentPattern = new RegExp(`^${parts}(-.*)?$`);
const length = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'.length;
const storedPattern = new RegExp(`^${parts}(?: |$)`);

/**
 * Null when W3C trace context does not allow it. One of a later version, which may be longer, is read as version 00,
 * whose only flag is "sampled".
 */
export function checkedTraceparent(text: string): string | null {
  const found = traceparentPattern.exec(text);
  if (found === null) return null;
  const [, version, traceId, spanId, flags = '', more] = found;
  if (version === 'ff' || (version === '00' && more !== undefined)) return null;
  if (version === '00') return text;
  return `00-${traceId}-${spanId}-0${Number.parseInt(flags, 16) & 1}`;
}

/**
 * One text for both, which the row of a task keeps: the traceparent, a space and the trace id where there are two. A
 * trace id that begins like a traceparent is written behind it, so that it is read as it was given. Null: nothing was
 * given, which is most tasks.
 */
export function traceToText({ traceId, traceparent }: GivenTrace): string | null {
  if (traceId === undefined) return traceparent ?? null;
  if (traceparent !== undefined) return `${traceparent} ${traceId}`;
  return storedPattern.test(traceId) ? `${traceId.slice(0, length)} ${traceId}` : traceId;
}

/** A task that was given no trace has that of its own id. */
export function traceFromText(text: string | null, taskId: TaskId): Trace {
  if (text === null) return { traceId: taskId.replaceAll('-', ''), traceparent: null };
  const [, , ownId] = storedPattern.exec(text) ?? [];
  if (ownId === undefined) return { traceId: text, traceparent: null };
  const given = text.slice(length + 1);
  return { traceId: given === '' ? ownId : given, traceparent: text.slice(0, length) };
}

export function traceIdFromText(text: string | null, taskId: TaskId): string {
  return traceFromText(text, taskId).traceId;
}
