import { SlowReadError, type Queryable } from './database.js';

/** Postgres cancelled the statement: it took longer than `statement_timeout`. */
const cancelled = '57014';

const waitShare = 0.4;

interface BoundedReadsOptions {
  /** How many run at once. */
  readonly max: number;
  /** How long one may run. It may wait less than half as long for its turn. */
  readonly readMs: number;
}

/**
 * Reads that people ask for. A few run at a time and the others wait for their turn, so that they never take
 * all connections, nor the one connection of an embedded database for longer than one statement.
 */
export function boundedReads(db: Queryable, { max, readMs }: BoundedReadsOptions): Queryable {
  const turns = new Turns(max, readMs * waitShare);
  const inTurn = async <Answer>(read: () => Promise<Answer>): Promise<Answer> => {
    await turns.take();
    try {
      return await read();
    } catch (error) {
      throw isCancelled(error) ? new SlowReadError('took too long', { cause: error }) : error;
    } finally {
      turns.pass();
    }
  };
  return {
    query: (text, parameters) => inTurn(() => db.query(text, parameters)),
    run: (script) => inTurn(() => db.run(script)),
  };
}

function isCancelled(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ('code' in error && error.code === cancelled) || isCancelled(error.cause);
}

class Turns {
  readonly #waitMs: number;
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(max: number, waitMs: number) {
    this.#free = max;
    this.#waitMs = waitMs;
  }

  async take(): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(begin), 1);
        reject(new SlowReadError('waited too long for its turn'));
      }, this.#waitMs);
      const begin = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#waiting.push(begin);
    });
  }

  /** To the next one, if somebody waits. */
  pass(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
