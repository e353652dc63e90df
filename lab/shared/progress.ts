import { setTimeout as delay } from 'node:timers/promises';
import { SingleBar } from 'cli-progress';

const lookEveryMs = 200;
const lineEveryMs = 10_000;

/** A bar where a person looks; elsewhere a line every ten seconds, which a log can keep. */
export class Progress {
  say(text: string): void {
    console.error(text);
  }

  /** So many that somebody else counts. */
  steps(title: string, total: number): Steps {
    const view = viewOf(title, total);
    let done = 0;
    return {
      step: () => view.update((done += 1)),
      [Symbol.dispose]: () => view.stop(),
    };
  }

  /** Until the time is over. */
  async wait(title: string, durationMs: number): Promise<void> {
    const beganMs = performance.now();
    const total = Math.round(durationMs / 1000);
    await this.until(`${title}, seconds`, total, async () => (performance.now() - beganMs) / 1000);
  }

  /** Until `done` answers `total`, or more. */
  async until(title: string, total: number, done: () => Promise<number>): Promise<void> {
    const view = viewOf(title, total);
    try {
      for (;;) {
        const value = await done();
        view.update(Math.min(total, Math.floor(value)));
        if (value >= total) return;
        await delay(lookEveryMs);
      }
    } finally {
      view.stop();
    }
  }
}

export interface Steps extends Disposable {
  /** One more is done. */
  step(): void;
}

interface View {
  update(value: number): void;
  stop(): void;
}

function viewOf(title: string, total: number): View {
  return process.stderr.isTTY ? bar(title, total) : lines(title, total);
}

function bar(title: string, total: number): View {
  const single = new SingleBar({
    format: `  ${title} {bar} {value}/{total}`,
    barCompleteChar: '█',
    barIncompleteChar: '░',
    barsize: 30,
    hideCursor: true,
    clearOnComplete: true,
  });
  single.start(total, 0);
  return {
    update: (value) => single.update(value),
    stop: () => single.stop(),
  };
}

function lines(title: string, total: number): View {
  let saidMs = performance.now();
  return {
    update: (value) => {
      if (performance.now() - saidMs < lineEveryMs) return;
      saidMs = performance.now();
      console.error(`  ${title}: ${value}/${total}`);
    },
    stop: () => undefined,
  };
}
