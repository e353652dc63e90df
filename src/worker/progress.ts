import { storableText } from '../domain/storable-text.js';

export interface ProgressNote {
  readonly percent: number;
  readonly message?: string;
}

/** What the server keeps of a message. */
const messageLength = 1_000;

/** Null: no percentage, for example of nothing done out of nothing. */
export function progressNote(percent: number, message?: unknown): ProgressNote | null {
  if (!(percent >= 0 && percent <= 100)) return null;
  return typeof message === 'string'
    ? { percent, message: storableText(message, messageLength) }
    : { percent };
}

/** Sends what the handler last said, one call at a time: a chatty handler costs one call per answer. */
export class ProgressLine {
  readonly #send: (note: ProgressNote) => Promise<void>;
  #latest: ProgressNote | null = null;
  #sending = false;
  #closed = false;

  constructor(send: (note: ProgressNote) => Promise<void>) {
    this.#send = send;
  }

  say(note: ProgressNote): void {
    if (this.#closed) return;
    this.#latest = note;
    if (!this.#sending) void this.#drain();
  }

  /** The attempt is over: nobody wants to know how far it is. */
  close(): void {
    this.#closed = true;
    this.#latest = null;
  }

  async #drain(): Promise<void> {
    this.#sending = true;
    while (this.#latest !== null) {
      const note = this.#latest;
      this.#latest = null;
      await this.#send(note);
    }
    this.#sending = false;
  }
}
