import type { JsonValue } from '../domain/json.js';

/** Hears every message that arrives, in the order in which one sender sent them. */
export type MailListener = (from: string, messages: readonly JsonValue[]) => void;

/**
 * Carries messages between the processes that share a database. Messages of one sender to one recipient arrive in order.
 * A message may be lost: whatever depends on it must come right without it.
 */
export interface Mailbox {
  /** Where others send to. Of this process, for as long as it runs. */
  readonly address: string;
  /** `listen`: Postgres says when there is mail. `poll`: it is looked for, as behind a pooler in transaction mode. */
  readonly delivery: 'listen' | 'poll';
  /** `message` is JSON text. Rejects when it could not be written. */
  send(to: string, message: string): Promise<void>;
  /** One listener, from now on. */
  receive(listener: MailListener): void;
  close(): Promise<void>;
}
