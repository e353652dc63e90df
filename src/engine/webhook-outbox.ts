import { randomUUID } from 'node:crypto';
import {
  claimMessage,
  deleteMessage,
  noteFailedTry,
  trimMessages,
  type ClaimedMessage,
} from '../store/webhook-deliveries.js';
import { instant, type EngineContext } from './context.js';

/** Longer than one try may take. */
const claimMs = 30_000;

/** Messages for webhooks, in Postgres: for whoever sends them. */
export class WebhookOutbox {
  readonly #context: EngineContext;
  readonly #sender = randomUUID();
  #onAdded: () => void = () => undefined;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** Called when this process added messages; those of others are found by looking. */
  onAdded(listener: () => void): void {
    this.#onAdded = listener;
  }

  /** After messages to a target were written. */
  async added(target: string): Promise<void> {
    const dropped = await trimMessages(this.#context.db, target, instant(this.#context));
    if (dropped > 0) {
      this.#context.log.warn(
        { target, dropped },
        'too many webhook messages wait; dropped the oldest',
      );
    }
    this.#onAdded();
  }

  /** The next message to this target; null: none is due, or another server sends it. */
  claim(target: string): Promise<ClaimedMessage | null> {
    const claimer = { target, sender: this.#sender, leaseMs: claimMs };
    return claimMessage(this.#context.db, claimer, instant(this.#context));
  }

  delivered({ id }: ClaimedMessage): Promise<void> {
    return deleteMessage(this.#context.db, id);
  }

  /** `retryInMs` null: it is given up. */
  failed({ id }: ClaimedMessage, error: string, retryInMs: number | null): Promise<void> {
    const failure = { id, sender: this.#sender, error, retryInMs };
    return noteFailedTry(this.#context.db, failure, instant(this.#context));
  }
}
