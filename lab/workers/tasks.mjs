// What the workers of this lab run, and of the process tests. Plain JavaScript: no compiler each.
import { Buffer } from 'node:buffer';
import { appendFileSync, writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';

const { RUN_LOG, LOOP_LOG, WORKER_NAME = String(process.pid) } = process.env;
/** 10: a tenth of the speed. */
const slowness = Number(process.env.WORKER_SLOWNESS ?? 1);

/** One short line in one write to a file that is open for appending: lines of many processes keep whole. */
function note(what, { task, attempt }, more = {}) {
  if (RUN_LOG === undefined) return;
  const line = { what, taskId: task.taskId, attempt, worker: WORKER_NAME, at: Date.now(), ...more };
  appendFileSync(RUN_LOG, `${JSON.stringify(line)}\n`);
}

/** Does nothing. */
export const noop = { type: 'noop', run: () => null };

/** Waits, and writes nothing down but how late the event loop was. */
export const sleep = {
  type: 'sleep',
  run: async ({ ms }) => {
    loop.enter();
    await delay(ms);
    loop.leave();
    return null;
  },
};

/** Waits, and writes down when it began and ended, or what it was stopped for. */
export const step = {
  type: 'step',
  run: async ({ ms }, context) => {
    note('began', context);
    await delay(ms * slowness, undefined, context).catch(() => {
      note('stopped', context, { why: context.signal.reason.why });
      throw context.signal.reason;
    });
    note('ended', context);
    return WORKER_NAME;
  },
};

/** Holds memory until this process uses so many bytes, then for so long. */
export const hold = {
  type: 'hold',
  run: async ({ bytes, ms }, context) => {
    note('began', context);
    const held = [];
    while (process.memoryUsage.rss() < bytes) {
      held.push(Buffer.alloc(8 * 2 ** 20, 1));
      await delay(5);
    }
    note('holds', context);
    await delay(ms);
    note('ended', context);
    return held.length;
  },
};

/** How late the event loop was while tasks ran: what was seen when the last one ended. */
class LoopDelay {
  #resolutionMs = 10;
  #histogram = monitorEventLoopDelay({ resolution: this.#resolutionMs });
  #running = 0;
  #seen = null;

  enter() {
    if (this.#running === 0 && this.#seen === null) this.#histogram.enable();
    this.#running += 1;
  }

  leave() {
    this.#running -= 1;
    if (this.#running > 0) return;
    this.#seen = { p50: this.#ms(50), p99: this.#ms(99), most: this.#ms(100) };
  }

  write(path) {
    writeFileSync(path, JSON.stringify(this.#seen));
  }

  /** The histogram is of the time from one look to the next. */
  #ms(percentile) {
    return Math.max(0, this.#histogram.percentile(percentile) / 1e6 - this.#resolutionMs);
  }
}

const loop = new LoopDelay();
if (LOOP_LOG !== undefined) process.once('exit', () => loop.write(LOOP_LOG));
