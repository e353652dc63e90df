import { setTimeout as delay } from 'node:timers/promises';
import type { Child } from '../shared/child.js';

/** How long whoever keeps it up waits when it ended by itself. */
const restartMs = 300;

/** A process that is started again whenever it is gone, as a supervisor would do it. */
export class Supervised {
  readonly #start: () => Child;
  #child: Child | null = null;
  #isClosed = false;
  /** Times that it ended without being killed. */
  gaveUp = 0;

  constructor(start: () => Child) {
    this.#start = start;
  }

  start(): void {
    if (this.#isClosed) return;
    const child = this.#start();
    this.#child = child;
    void child.exited.then(() => this.#onExit(child));
  }

  /** Until it says that it is ready, whoever has to be started for that. */
  async ready(): Promise<void> {
    for (;;) {
      const child = this.#child;
      const isReady =
        child !== null &&
        (await child.ready.then(
          () => true,
          () => false,
        ));
      if (isReady && child === this.#child) return;
      await delay(20);
    }
  }

  /** SIGKILL. It stays away until it is started. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    await child?.kill();
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.signal(signal);
  }

  async terminate(): Promise<void> {
    this.#isClosed = true;
    const child = this.#child;
    this.#child = null;
    await child?.terminate();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.kill();
  }

  #onExit(child: Child): void {
    if (this.#child !== child) return;
    this.gaveUp += 1;
    setTimeout(() => {
      if (this.#child === child) this.start();
    }, restartMs);
  }
}
