import { setTimeout as delay } from 'node:timers/promises';
import { spreadOf, type Spread } from '../shared/measure.js';

const everyMs = 50;

/**
 * What lies between a grant and its claim is a turn of the server's event loop and a statement.
 * Nobody sees the grant, so this measures the same from outside: `/readyz` asks Postgres too.
 */
export class Probe {
  readonly #delays: number[] = [];
  readonly #ending = new AbortController();
  readonly #done: Promise<unknown>;

  constructor(urls: readonly string[]) {
    this.#done = Promise.all(urls.map((url) => this.#look(`${url}/readyz`)));
  }

  async stop(): Promise<Spread> {
    this.#ending.abort();
    await this.#done;
    return spreadOf(this.#delays);
  }

  async #look(url: string): Promise<void> {
    while (!this.#ending.signal.aborted) {
      const beganMs = performance.now();
      // A server that was killed answers nobody, and grants nothing either.
      const isReady = await fetch(url).then(
        async (response) => response.ok && (await response.text()) !== '',
        () => false,
      );
      if (isReady) this.#delays.push(performance.now() - beganMs);
      await delay(everyMs);
    }
  }
}
