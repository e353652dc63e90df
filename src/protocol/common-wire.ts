import type { TaskId, WorkerId } from '../domain/ids.js';

export function timestampToWire(instant: Date): string {
  return instant.toISOString();
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
