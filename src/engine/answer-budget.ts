import { getHeapStatistics } from 'node:v8';
import { SluiceError } from '../domain/errors.js';
import { bounds } from '../protocol/bounds.js';

/** Measured: a byte of "[{},{}]" becomes 22 bytes of heap when it is parsed, and there is other work. */
const heapBytesPerByte = 32;
const defaultWaitMs = 3_000;
const defaultUnreadForMs = 30_000;

interface Waiting {
  readonly bytes: number;
  readonly admit: () => void;
}

/** Those that reserve room, and those that wait for it. */
interface Line {
  reserved: number;
  readonly waiting: Waiting[];
}

/**
 * Bytes of answers that are read from Postgres or sent to callers at once, however many ask. A read
 * reserves the most that its answer may become; an answer holds its real size until it is sent. Answers to
 * workers have as much room besides, so that unread lists never keep tasks from their workers. Writes that answer with a
 * task reserve as much besides: they don't wait for reads, only for one another and for answers that are not read.
 */
export class AnswerBudget {
  /** An answer of which nothing was read for so long is given up. */
  readonly unreadForMs: number;
  readonly #maxBytes: number;
  readonly #waitMs: number;
  readonly #reads: Line = { reserved: 0, waiting: [] };
  readonly #writes: Line = { reserved: 0, waiting: [] };
  #sending = 0;
  #sendingToWorkers = 0;

  /** The largest answer passes twice at least. */
  constructor({
    maxBytes = getHeapStatistics().heap_size_limit / heapBytesPerByte,
    waitMs = defaultWaitMs,
    unreadForMs = defaultUnreadForMs,
  } = {}) {
    this.#maxBytes = Math.max(2 * bounds.answerBytes, maxBytes);
    this.#waitMs = waitMs;
    this.unreadForMs = unreadForMs;
  }

  get room(): number {
    return this.#roomIn(this.#reads);
  }

  /** Workers read their tasks more slowly than they are given. */
  get isClogged(): boolean {
    return this.#sendingToWorkers >= this.#maxBytes;
  }

  /** At once, room or not. Answers with how to give it back, once. */
  hold(bytes: number, isForWorker = false): () => void {
    if (isForWorker) this.#sendingToWorkers += bytes;
    else this.#sending += bytes;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      if (isForWorker) this.#sendingToWorkers -= bytes;
      else this.#sending -= bytes;
      this.#admit();
    };
  }

  /** Waits for room, in order, and reserves it while `read` runs. Refused when none comes in time. */
  within<Answer>(bytes: number, read: () => Promise<Answer>): Promise<Answer> {
    return this.#through(this.#reads, bytes, read);
  }

  /** The same for a write and its answer: refused before anything is written. */
  withinWrites<Answer>(bytes: number, write: () => Promise<Answer>): Promise<Answer> {
    return this.#through(this.#writes, bytes, write);
  }

  async #through<Answer>(line: Line, bytes: number, work: () => Promise<Answer>): Promise<Answer> {
    if (line.waiting.length === 0 && bytes <= this.#roomIn(line)) line.reserved += bytes;
    else await this.#wait(line, bytes);
    try {
      return await work();
    } finally {
      line.reserved -= bytes;
      this.#admit();
    }
  }

  #roomIn({ reserved }: Line): number {
    return Math.max(0, this.#maxBytes - reserved - this.#sending);
  }

  #wait(line: Line, bytes: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        line.waiting.splice(line.waiting.indexOf(waiting), 1);
        reject(noRoom());
        this.#admit();
      }, this.#waitMs);
      const admit = () => {
        clearTimeout(timer);
        line.reserved += bytes;
        resolve();
      };
      const waiting = { bytes, admit };
      line.waiting.push(waiting);
    });
  }

  #admit(): void {
    for (const line of [this.#reads, this.#writes]) this.#admitTo(line);
  }

  #admitTo(line: Line): void {
    for (;;) {
      const [first] = line.waiting;
      if (first === undefined || first.bytes > this.#roomIn(line)) return;
      line.waiting.shift();
      first.admit();
    }
  }
}

function noRoom(): SluiceError {
  const detail =
    'Too many large answers are under way. Ask again in a second, for fewer tasks or without ' +
    'parameters and results.';
  return new SluiceError('unavailable', detail, { retryAfterSeconds: 1 });
}
