import type { JsonValue } from '../domain/json.js';

/**
 * Carries messages between the servers of one cluster. A message may be lost: whatever depends on
 * it must come right without it, only later.
 */
export interface Bus {
  /** All others hear it; whoever sent it does not. */
  publish(message: JsonValue): void;
  /** Answers with how to stop listening. */
  subscribe(listener: (message: JsonValue) => void): () => void;
  close(): Promise<void>;
}

/** Of a server that is alone: nobody else hears, nobody else speaks. */
export class LocalBus implements Bus {
  publish(_message: JsonValue): void {
    return;
  }

  subscribe(_listener: (message: JsonValue) => void): () => void {
    return () => undefined;
  }

  async close(): Promise<void> {
    return;
  }
}
