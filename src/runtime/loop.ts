export interface LoopOptions {
  /** Does one bounded piece of work and answers how long until the next, in milliseconds. */
  readonly tick: () => Promise<number>;
  readonly onError: (error: unknown) => void;
  /** How long to wait after a tick that threw. */
  readonly errorDelayMs?: number;
}

/** Runs ticks one after the other until stopped; `wake` cuts the wait between two of them short. */
export class Loop {
  readonly #options: LoopOptions;
  #running: Promise<void> | null = null;
  #stopping = false;
  #woken = false;
  #endWait: (() => void) | null = null;

  constructor(options: LoopOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#running !== null || this.#stopping) return;
    this.#running = this.#run();
  }

  wake(): void {
    this.#woken = true;
    this.#endWait?.();
  }

  /** Resolves when no tick runs any more. May be called twice, or first. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#endWait?.();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stopping) {
      this.#woken = false;
      const delayMs = await this.#tick();
      if (!this.#mustGoOn()) await this.#wait(delayMs);
    }
  }

  /** Asked after an await: `wake` or `stop` may have been called in between. */
  #mustGoOn(): boolean {
    return this.#woken || this.#stopping;
  }

  async #tick(): Promise<number> {
    try {
      return await this.#options.tick();
    } catch (error) {
      this.#options.onError(error);
      return this.#options.errorDelayMs ?? 1000;
    }
  }

  #wait(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#endWait = null;
        resolve();
      };
      const timer = setTimeout(end, delayMs);
      this.#endWait = end;
    });
  }
}
