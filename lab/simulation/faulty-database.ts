import { DatabaseAwayError, type Database, type Queryable } from '../../src/store/database.js';
import type { VirtualTime } from './virtual-time.js';

/** Where in a statement: before it is sent, or after it was done and before its answer comes. */
export type Moment = 'before' | 'after';

export interface Fault {
  readonly kind: 'crash' | 'cut';
  readonly moment: Moment;
  /** How many statements go well before. */
  readonly after: number;
}

export interface FaultyDatabaseOptions {
  readonly inner: Database;
  readonly time: VirtualTime;
  /** On the way there, and again on the way back. */
  readonly delayMs: () => number;
  readonly onCrash: () => void;
}

/**
 * The connection of one server: slow, cut, away, or gone with the server. What is asked of it after a
 * crash is never answered, as nobody is left who could hear it.
 */
export class FaultyDatabase implements Database {
  readonly #options: FaultyDatabaseOptions;
  readonly urgent: Queryable;
  readonly vital: Queryable;
  readonly reads: Queryable;
  readonly ordered: Database['ordered'];
  /** Several simulated servers share one embedded database. */
  readonly isExclusive = false;
  #fault: Fault | null = null;
  #left = 0;
  #isAway = false;
  #isDead = false;

  constructor(options: FaultyDatabaseOptions) {
    this.#options = options;
    this.urgent = {
      query: (text, parameters) => this.#ask(() => options.inner.urgent.query(text, parameters)),
      run: (script) => this.#ask(() => options.inner.urgent.run(script)),
    };
    this.vital = this;
    this.reads = this;
    let last: Promise<unknown> = Promise.resolve();
    this.ordered = {
      query: <Row>(text: string, parameters?: readonly unknown[]) => {
        const answer = last.then(() => this.query<Row>(text, parameters));
        last = answer.catch(() => undefined);
        return answer;
      },
    };
  }

  query<Row>(text: string, parameters?: readonly unknown[]): Promise<Row[]> {
    return this.#ask(() => this.#options.inner.query<Row>(text, parameters));
  }

  run(script: string): Promise<void> {
    return this.#ask(() => this.#options.inner.run(script));
  }

  transaction<T>(work: (connection: Queryable) => Promise<T>): Promise<T> {
    return this.#ask(() =>
      this.#options.inner.transaction((connection) => work(this.#inside(connection))),
    );
  }

  nowMs(): number {
    return Date.now();
  }

  async close(): Promise<void> {
    return;
  }

  plan(fault: Fault): void {
    this.#fault = fault;
    this.#left = fault.after;
  }

  setAway(isAway: boolean): void {
    this.#isAway = isAway;
  }

  die(): void {
    this.#isDead = true;
  }

  heal(): void {
    this.#fault = null;
    this.#isAway = false;
  }

  async #ask<Answer>(statement: () => Promise<Answer>): Promise<Answer> {
    await this.#travel();
    const fault = this.#due();
    this.#meet(fault, 'before');
    if (this.#isDead) return never();
    const answer = await this.#survive(statement);
    if (this.#isGone()) return never();
    await this.#travel();
    this.#meet(fault, 'after');
    return this.#isGone() ? never() : answer;
  }

  /** A transaction whose server dies in the middle is rolled back; nobody hears of it. */
  async #survive<Answer>(statement: () => Promise<Answer>): Promise<Answer> {
    try {
      return await statement();
    } catch (error) {
      if (this.#isGone()) return never();
      throw error;
    }
  }

  #inside(connection: Queryable): Queryable {
    const ask = async <Answer>(statement: () => Promise<Answer>): Promise<Answer> => {
      const fault = this.#due();
      this.#meet(fault, 'before');
      if (this.#isGone()) throw new DatabaseAwayError('the server is gone');
      const answer = await statement();
      this.#meet(fault, 'after');
      if (this.#isGone()) throw new DatabaseAwayError('the server is gone');
      return answer;
    };
    return {
      query: (text, parameters) => ask(() => connection.query(text, parameters)),
      run: (script) => ask(() => connection.run(script)),
    };
  }

  async #travel(): Promise<void> {
    const ms = this.#options.delayMs();
    if (ms > 0) await this.#options.time.sleep(ms);
  }

  #due(): Fault | null {
    const fault = this.#fault;
    if (fault === null) return null;
    this.#left -= 1;
    if (this.#left >= 0) return null;
    this.#fault = null;
    return fault;
  }

  #meet(fault: Fault | null, moment: Moment): void {
    if (this.#isAway && moment === 'before') throw new DatabaseAwayError('Postgres is away');
    if (fault?.moment !== moment) return;
    if (fault.kind === 'cut') throw new DatabaseAwayError('the connection was cut');
    this.#options.onCrash();
  }

  /** Asked anew after an await. */
  #isGone(): boolean {
    return this.#isDead;
  }
}

function never<Answer>(): Promise<Answer> {
  return new Promise(() => undefined);
}
