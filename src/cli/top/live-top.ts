import { describeFailure } from '../failure.js';
import { oneLine } from '../readable.js';
import { queueOrders, type QueueOrder } from './queue-order.js';
import { drawScreen, type Shown } from './screen.js';
import { Terminal, type Key } from './terminal.js';

export interface TopOptions {
  readonly server: string;
  readonly intervalMs: number;
  readonly ask: () => Promise<Shown>;
}

/** The screen until a person quits. */
export class LiveTop {
  readonly #options: TopOptions;
  readonly #terminal: Terminal;
  readonly #quit = new AbortController();
  #shown: Shown | null = null;
  #trouble: string | null = 'Asking the server …';
  #order: QueueOrder = 'waiting';
  #offset = 0;

  constructor(options: TopOptions) {
    this.#options = options;
    this.#terminal = new Terminal({
      key: (key) => {
        this.#press(key);
      },
      resize: () => {
        this.#draw();
      },
    });
  }

  async run(): Promise<void> {
    const quit = () => {
      this.#quit.abort();
    };
    process.once('SIGINT', quit).once('SIGTERM', quit);
    this.#terminal.open();
    try {
      this.#draw();
      while (!this.#quit.signal.aborted) {
        await Promise.race([this.#refresh(), this.#untilQuit()]);
        this.#draw();
        await this.#pause();
      }
    } finally {
      this.#terminal.close();
      process.off('SIGINT', quit).off('SIGTERM', quit);
    }
  }

  /** A server that restarts is asked again; what it said last stays on the screen. */
  async #refresh(): Promise<void> {
    try {
      this.#shown = await this.#options.ask();
      this.#trouble = null;
    } catch (error) {
      this.#trouble = oneLine(describeFailure(error));
    }
  }

  #press({ name, ctrl }: Key): void {
    const page = Math.max(1, this.#terminal.height - 12);
    const steps: Readonly<Record<string, number>> = {
      up: -1,
      down: 1,
      pageup: -page,
      pagedown: page,
    };
    if (name === 'q' || (ctrl === true && name === 'c')) this.#quit.abort();
    else if (name === 's') this.#order = following(queueOrders, this.#order);
    else if (name !== undefined) this.#scroll(steps[name] ?? 0);
    this.#draw();
  }

  #scroll(lines: number): void {
    const most = Math.max(0, (this.#shown?.queues.length ?? 0) - 1);
    this.#offset = Math.min(most, Math.max(0, this.#offset + lines));
  }

  #draw(): void {
    if (this.#quit.signal.aborted) return;
    this.#terminal.draw(
      drawScreen(this.#shown, {
        server: this.#options.server,
        now: new Date(),
        width: this.#terminal.width,
        height: this.#terminal.height,
        order: this.#order,
        offset: this.#offset,
        trouble: this.#trouble,
      }),
    );
  }

  #untilQuit(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#quit.signal.aborted) resolve();
      else
        this.#quit.signal.addEventListener(
          'abort',
          () => {
            resolve();
          },
          { once: true },
        );
    });
  }

  async #pause(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const passed = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#options.intervalMs);
    });
    await Promise.race([passed, this.#untilQuit()]);
    clearTimeout(timer);
  }
}

function following<T>(all: readonly T[], one: T): T {
  const next = all[(all.indexOf(one) + 1) % all.length];
  return next ?? one;
}
