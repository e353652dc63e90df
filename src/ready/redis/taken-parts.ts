import type { TakeAnswer, Taken } from '../ready-queue.js';

/** One take that several scripts make: each takes some of the count, or looks at some of the sources. */
export class TakenParts {
  readonly #count: number;
  #entries: Taken[] = [];
  #generation = 0;
  #next: Extract<TakeAnswer, { kind: 'taken' }>['next'] = null;
  #waitMs: number | null = null;
  #isDone = false;
  /** Which part is asked for next. */
  part = 0;

  constructor(count: number) {
    this.#count = count;
  }

  get size(): number {
    return this.#entries.length;
  }

  goesOn(parts: number): boolean {
    return !this.#isDone && this.part < parts;
  }

  note(answer: TakeAnswer): void {
    if (answer.kind === 'rebuild') return;
    if (answer.kind === 'taken') this.#add(answer.generation, answer.entries);
    const next = answer.kind === 'taken' ? answer.next : null;
    if (this.size >= this.#count) {
      this.#isDone = true;
      this.#next = next;
      this.#waitMs = answer.waitMs;
      return;
    }
    // Zero without a next one: the script ended early, and the next one goes on.
    if (next !== null || answer.waitMs === 0) return;
    this.part += 1;
    this.#waitBy(answer.waitMs);
  }

  /** `isCutShort`: not all was looked at. */
  answer(isCutShort: boolean): TakeAnswer {
    if (isCutShort) this.#waitBy(0);
    const waitMs = this.#waitMs;
    if (this.size === 0) return { kind: 'wait', waitMs };
    const [generation, entries, next] = [this.#generation, this.#entries, this.#next];
    return { kind: 'taken', generation, entries, next, waitMs: next === null ? waitMs : 0 };
  }

  /** What was taken of contents that are gone by now is not held by anybody: Postgres refuses its claim. */
  #add(generation: number, entries: readonly Taken[]): void {
    if (generation !== this.#generation) this.#entries = [];
    this.#generation = generation;
    this.#entries.push(...entries);
  }

  #waitBy(waitMs: number | null): void {
    if (waitMs === null) return;
    this.#waitMs = this.#waitMs === null ? waitMs : Math.min(this.#waitMs, waitMs);
  }
}
