import { randomUUID } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import type { JsonValue } from '../../domain/json.js';
import type { Bus } from '../../runtime/bus.js';
import { silentLog, type Logger } from '../../runtime/log.js';
import type { RedisClient } from './client.js';
import type { RedisConnection } from './connection.js';

/** Over pub/sub. Nothing is kept for whoever is away, and a failure to publish is a lost message. */
export class RedisBus implements Bus {
  readonly #connection: RedisConnection;
  readonly #subscriber: RedisClient;
  readonly #channel: string;
  readonly #log: Logger;
  readonly #sender = randomUUID();
  /** How what we sent ourselves begins: it comes back to us, and need not be read. */
  readonly #ours = JSON.stringify({ from: this.#sender }).slice(0, -1);
  readonly #listeners = new Set<(message: JsonValue) => void>();

  constructor(connection: RedisConnection, prefix: string, log: Logger = silentLog) {
    this.#connection = connection;
    this.#channel = `${prefix}bus`;
    this.#log = log;
    this.#subscriber = connection.subscriber();
    (this.#subscriber as EventEmitter).on('ready', this.#listenIn).on('message', this.#receive);
    if (this.#subscriber.status === 'ready') this.#listenIn();
  }

  publish(message: JsonValue): void {
    const letter = JSON.stringify({ from: this.#sender, message });
    this.#connection.client.publish(this.#channel, letter).catch(() => undefined);
  }

  subscribe(listener: (message: JsonValue) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    (this.#subscriber as EventEmitter).off('ready', this.#listenIn).off('message', this.#receive);
    // Nobody waits for the answer: a server that hangs would keep us from closing.
    this.#subscriber.unsubscribe(this.#channel).catch(() => undefined);
  }

  /** What fails here is a lost connection: it comes again with the next one. */
  readonly #listenIn = (): void => {
    this.#subscriber.subscribe(this.#channel).catch(() => undefined);
  };

  readonly #receive = (channel: string, text: string): void => {
    if (channel !== this.#channel || text.startsWith(this.#ours)) return;
    const letter = parseLetter(text);
    if (letter === null) return;
    for (const listener of [...this.#listeners]) {
      try {
        listener(letter.message);
      } catch (error) {
        this.#log.error({ err: error }, 'a listener of the bus threw');
      }
    }
  };
}

interface Letter {
  readonly from: string;
  readonly message: JsonValue;
}

function parseLetter(text: string): Letter | null {
  try {
    const letter = JSON.parse(text) as Partial<Letter> | null;
    if (typeof letter?.from !== 'string' || letter.message === undefined) return null;
    return { from: letter.from, message: letter.message };
  } catch {
    return null;
  }
}
