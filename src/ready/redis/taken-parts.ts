import type { TakeAnswer, Taken } from '../ready-queue.js';
import type { Argument } from './script-runner.js';

type Part = readonly Argument[];

/** One take that several scripts make: each takes some of the count, or looks at some of the sources. */
export class TakenParts {
  readonly #count: number;
  #entries: Taken[] = [];
  #generation = 0;
  #next: Extract<TakeAnswer, { kind: 'taken' }>['next'] = null;
  #waitMs: number | null = null;
  #isDone = false;
  #parts: Iterator<Part, void>;
  /** Of parts that a script did not do all of. */
  #restOfParts: readonly Part[] = [];
  #part: Part | null = null;

  constructor(count: number, parts: Iterable<Part, void>) {
    this.#count = count;
    this.#parts = parts[Symbol.iterator]();
    this.#goToNext();
  }

  get size(): number {
    return this.#entries.length;
  }

  /** What is asked for next; null: nothing more. */
  get part(): Part | null {
    return this.#isDone ? null : this.#part;
  }

  /** They are others, or come in another order. */
  beginAnew(parts: Iterable<Part, void>): void {
    this.#parts = parts[Symbol.iterator]();
    this.#restOfParts = [];
    this.#goToNext();
  }

  /** In place of the present one. */
  splitPart(parts: readonly Part[]): void {
    this.#restOfParts = [...parts, ...this.#restOfParts];
    this.#goToNext();
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
    this.#goToNext();
    this.waitBy(answer.waitMs);
  }

  answer(): TakeAnswer {
    const waitMs = this.#waitMs;
    if (this.size === 0) return { kind: 'wait', waitMs };
    const [generation, entries, next] = [this.#generation, this.#entries, this.#next];
    return { kind: 'taken', generation, entries, next, waitMs: next === null ? waitMs : 0 };
  }

  #goToNext(): void {
    const [first, ...others] = this.#restOfParts;
    this.#restOfParts = others;
    this.#part = first ?? this.#parts.next().value ?? null;
  }

  /** What was taken of contents that are gone by now is not held by anybody: Postgres refuses its claim. */
  #add(generation: number, entries: readonly Taken[]): void {
    if (generation !== this.#generation) this.#entries = [];
    this.#generation = generation;
    this.#entries.push(...entries);
  }

  /** Of what this take leaves out, or what other scripts of it do. */
  waitBy(waitMs: number | null): void {
    if (waitMs === null) return;
    this.#waitMs = this.#waitMs === null ? waitMs : Math.min(this.#waitMs, waitMs);
  }
}
