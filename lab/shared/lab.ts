import { startPostgres } from '../../test/support/services/postgres-server.js';
import type { RunningServer } from '../../test/support/services/throw-away-server.js';
import { Progress } from './progress.js';

export interface LabOptions {
  /** Seconds instead of minutes: whether it works, not what it measures. */
  readonly quick: boolean;
  readonly long: boolean;
  /** What flags with a number say, by their names. */
  readonly numbers?: Readonly<Record<string, number>>;
  /** What flags with a text say; absent where none was given. */
  readonly texts?: Readonly<Record<string, string>>;
}

/** What all scenarios share: one Postgres, durable as in production, and how long they may take. */
export class Lab implements AsyncDisposable {
  readonly quick: boolean;
  readonly long: boolean;
  readonly progress = new Progress();
  readonly #postgres: RunningServer;
  readonly #numbers: Readonly<Record<string, number>>;
  readonly #texts: Readonly<Record<string, string>>;

  private constructor(
    postgres: RunningServer,
    { quick, long, numbers = {}, texts = {} }: LabOptions,
  ) {
    this.#postgres = postgres;
    this.quick = quick;
    this.long = long;
    this.#numbers = numbers;
    this.#texts = texts;
  }

  static async open(options: LabOptions): Promise<Lab> {
    return new Lab(await startPostgres({ durable: true }), options);
  }

  get postgresUrl(): string {
    return this.#postgres.url;
  }

  /** The one or the other. */
  size<Value>(whole: Value, quick: Value): Value {
    return this.quick ? quick : whole;
  }

  number(flag: string): number {
    const value = this.#numbers[flag];
    if (value === undefined) throw new Error(`This command has no --${flag}`);
    return value;
  }

  /** Null: it was not given. */
  text(flag: string): string | null {
    return this.#texts[flag] ?? null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#postgres.stop();
  }
}
