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

/**
 * Bytes of answers that are read from Postgres or sent to callers at once, however many ask. A read
 * reserves the most that its answer may become; an answer holds its real size until it is sent. Answers to
 * workers have as much room besides, so that unread lists never keep tasks from their workers.
 */
export class AnswerBudget {
  /** An answer of which nothing was read for so long is given up. */
  readonly unreadForMs: number;
  readonly #maxBytes: number;
  readonly #waitMs: number;
  readonly #waiting: Waiting[] = [];
  #reading = 0;
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
    return Math.max(0, this.#maxBytes - this.#reading - this.#sending);
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
  async within<Answer>(bytes: number, read: () => Promise<Answer>): Promise<Answer> {
    if (this.#waiting.length === 0 && bytes <= this.room) this.#reading += bytes;
    else await this.#wait(bytes);
    try {
      return await read();
    } finally {
      this.#reading -= bytes;
      this.#admit();
    }
  }

  #wait(bytes: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        reject(noRoom());
        this.#admit();
      }, this.#waitMs);
      const admit = () => {
        clearTimeout(timer);
        this.#reading += bytes;
        resolve();
      };
      const waiting = { bytes, admit };
      this.#waiting.push(waiting);
    });
  }

  #admit(): void {
    for (;;) {
      const [first] = this.#waiting;
      if (first === undefined || first.bytes > this.room) return;
      this.#waiting.shift();
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
