import { createHistogram, monitorEventLoopDelay } from 'node:perf_hooks';

const resolutionMs = 10;

/** What was answered, how late, and how late this process itself was. */
export class Tally {
  #answers = new Map();
  #loop = monitorEventLoopDelay({ resolution: resolutionMs });
  #began = null;
  #seconds = 0;
  #cpuShare = 0;
  #withoutRetryAfter = 0;
  #unsent = 0;
  #late = createHistogram();

  begin() {
    this.#began = { ms: performance.now(), cpu: process.cpuUsage() };
    this.#unsent = 0;
    this.#loop.enable();
  }

  end() {
    const { user, system } = process.cpuUsage(this.#began.cpu);
    this.#seconds = (performance.now() - this.#began.ms) / 1000;
    this.#cpuShare = (user + system) / 1e6 / this.#seconds;
    this.#loop.disable();
  }

  note(status, head, latencyMs, lateMs) {
    this.#late.record(Math.max(1, Math.round(lateMs * 1000)));
    const what = status === 0 ? head : String(status);
    let histogram = this.#answers.get(what);
    if (histogram === undefined) this.#answers.set(what, (histogram = createHistogram()));
    histogram.record(Math.max(1, Math.round(latencyMs * 1000)));
    if ((status === 429 || status === 503) && !head.includes('\r\nretry-after: ')) {
      this.#withoutRetryAfter += 1;
    }
  }

  noteUnsent(count) {
    this.#unsent += count;
  }

  report() {
    const answers = [...this.#answers].map(([what, histogram]) => [what, spreadOf(histogram, 1e3)]);
    const loop = spreadOf(this.#loop, 1e6);
    return {
      seconds: this.#seconds,
      answers: Object.fromEntries(answers),
      withoutRetryAfter: this.#withoutRetryAfter,
      unsent: this.#unsent,
      lateMs: spreadOf(this.#late, 1e3).p99,
      // The histogram is of the time from one look to the next.
      loopDelayMs: Math.max(0, loop.p99 - resolutionMs),
      cpuShare: this.#cpuShare,
    };
  }
}

function spreadOf(histogram, perMs) {
  return {
    count: histogram.count,
    p50: histogram.percentile(50) / perMs,
    p99: histogram.percentile(99) / perMs,
    most: histogram.max / perMs,
  };
}
