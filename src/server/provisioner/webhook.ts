import { createHmac } from 'node:crypto';
import { post } from '../webhooks/post.js';
import type { Provisioner, Wish } from './provisioner.js';

export interface WebhookOptions {
  readonly url: string;
  /** What `sluice-signature` is made with. */
  readonly secret: string;
  readonly patienceMs?: number;
}

/** Posts how many workers there should be to an address that knows how to bring that about. */
export class WebhookProvisioner implements Provisioner {
  readonly kind = 'webhook';
  readonly taskTypes = null;
  readonly #options: WebhookOptions;
  /** What it was told last and has acknowledged. */
  #told: number | null = null;

  constructor(options: WebhookOptions) {
    this.#options = options;
  }

  /** Every time that what there is differs from what there should be; else only what is news. */
  async request(wish: Wish, signal: AbortSignal): Promise<void> {
    const { desired, current } = wish;
    if (desired === current && desired === this.#told) return;
    this.#told = null;
    await this.#post(bodyOf(wish), signal);
    this.#told = desired;
  }

  async stop(): Promise<void> {
    this.#told = null;
  }

  async #post(body: string, signal: AbortSignal): Promise<void> {
    const { url, secret, patienceMs = 5_000 } = this.#options;
    const timestamp = String(Math.floor(Date.now() / 1000));
    const headers = {
      'sluice-timestamp': timestamp,
      'sluice-signature': `sha256=${signatureOf(secret, timestamp, body)}`,
    };
    const failure = await post({ url, headers, body, patienceMs, signal });
    if (failure !== null) throw new Error(failure);
  }
}

/** Over the time as well, so that what was sent once can't be sent again by others later. */
function signatureOf(secret: string, timestamp: string, body: string): string {
  return createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex');
}

function bodyOf({ desired, current, min, max, waiting, reason }: Wish): string {
  return JSON.stringify({ desired, current, min, max, waiting, reason });
}
