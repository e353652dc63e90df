import type { TaskId, WorkerId } from '../domain/ids.js';

let lastMs = NaN;
let lastText = '';

/** What happens together has one instant: it is written once, since 0.5 µs for each would be more than the rest. */
export function timestampToWire(instant: Date): string {
  const ms = instant.getTime();
  if (ms !== lastMs) {
    lastText = instant.toISOString();
    lastMs = ms;
  }
  return lastText;
}

export function timestampOrNullToWire(instant: Date | null): string | null {
  return instant === null ? null : instant.toISOString();
}

export function timestampFromWire(text: string): Date {
  return new Date(text);
}

export function timestampOrNullFromWire(text: string | null): Date | null {
  return text === null ? null : new Date(text);
}

/** A UUID may be written in capitals; everything behind the wire compares it as text. */
export function taskIdFromWire(text: string): TaskId {
  return text.toLowerCase() as TaskId;
}

export function workerIdFromWire(text: string): WorkerId {
  return text.toLowerCase() as WorkerId;
}
