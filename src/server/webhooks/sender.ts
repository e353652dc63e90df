import { retryWebhookMs } from '../../domain/webhook-retry.js';
import type { WebhookOutbox } from '../../engine/webhook-outbox.js';
import type { Logger } from '../../runtime/log.js';
import { Loop } from '../../runtime/loop.js';
import { DatabaseAwayError } from '../../store/database.js';
import type { ClaimedMessage } from '../../store/webhook-deliveries.js';
import { bodyOf, type WebhookFormat } from './bodies.js';
import { post } from './post.js';
import { signedHeaders } from './signature.js';

export interface WebhookTarget {
  readonly url: string;
  /** Null: messages are not signed, as for Slack. */
  readonly secret: string | null;
  readonly format: WebhookFormat;
}

export interface SenderOptions {
  readonly outbox: WebhookOutbox;
  /** Whose messages these are, as the outbox names it. */
  readonly name: string;
  readonly target: WebhookTarget;
  readonly log: Logger;
  /** How long a receiver may take to answer. Shorter than a claim. */
  readonly patienceMs?: number;
  /** How often it is looked for messages that other servers added, or that are due again. */
  readonly lookEveryMs?: number;
  /** In [0, 1). */
  readonly random?: () => number;
}

/**
 * Sends the messages of one target, one at a time and in order, until each was answered 2xx. Beside everything else:
 * a receiver that hangs holds up nothing but its own messages, which wait in Postgres.
 */
export class WebhookSender {
  readonly #options: SenderOptions;
  readonly #loop: Loop;
  readonly #stopping = new AbortController();
  #failure: string | null = null;

  constructor(options: SenderOptions) {
    this.#options = options;
    const { lookEveryMs = 2_000 } = options;
    this.#loop = new Loop({
      tick: async () => ((await this.#sendNext()) ? 0 : lookEveryMs),
      onError: (error) => this.#noteError(error),
      errorDelayMs: lookEveryMs,
    });
  }

  start(): void {
    this.#options.outbox.onAdded(() => this.#loop.wake());
    this.#loop.start();
  }

  /** Resolves when nothing is sent any more. What was not answered is sent again, by whoever comes next. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop.stop();
  }

  /** False: there is nothing to send for now. */
  async #sendNext(): Promise<boolean> {
    const { outbox, name } = this.#options;
    const message = await outbox.claim(name);
    if (message === null) return false;
    const failure = await this.#send(message);
    this.#heed(failure);
    if (failure === null) await outbox.delivered(message);
    else await this.#fail(message, failure);
    return failure === null;
  }

  #send(message: ClaimedMessage): Promise<string | null> {
    const { target, patienceMs = 10_000 } = this.#options;
    const { url, secret, format } = target;
    const body = bodyOf(format, message);
    const { messageId } = message;
    const headers =
      secret === null
        ? { 'webhook-id': messageId }
        : signedHeaders(secret, { messageId, body, nowMs: Date.now() });
    return post({ url, headers, body, patienceMs, signal: this.#stopping.signal });
  }

  async #fail(message: ClaimedMessage, failure: string): Promise<void> {
    const { outbox, random = Math.random, log, name } = this.#options;
    const { tries, ageMs, messageId } = message;
    // It was cut off by us: the next server tries at once.
    const isCutOff = this.#stopping.signal.aborted;
    const retryInMs = isCutOff ? 0 : retryWebhookMs(tries, ageMs, random());
    await outbox.failed(message, failure, retryInMs);
    if (retryInMs === null) {
      const fields = { target: name, message_id: messageId, tries, error: failure };
      log.error(fields, 'a webhook message was tried for 3 days and is given up');
    }
  }

  /** Logged when it changes, not every time. */
  #heed(failure: string | null): void {
    const { log, name } = this.#options;
    if (this.#stopping.signal.aborted || failure === this.#failure) return;
    if (failure === null) log.info({ target: name }, 'the webhook takes messages again');
    else {
      const fields = { target: name, error: failure };
      log.warn(fields, 'a webhook message could not be delivered; trying again');
    }
    this.#failure = failure;
  }

  /** That Postgres is away is said elsewhere. */
  #noteError(error: unknown): void {
    if (error instanceof DatabaseAwayError) return;
    this.#options.log.error({ err: error }, 'sending webhook messages failed; trying again');
  }
}
