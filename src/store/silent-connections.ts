import type pg from 'pg';

/** How long an answer may be missing. */
export interface Patience {
  /** Without a byte for so long, Postgres is asked whether it is still at it. */
  readonly quietMs: number;
  /** For a new connection, and for the answer to that. */
  readonly askMs: number;
  /** Where Postgres can't be asked, or does not say. */
  readonly mostMs: number;
  /** What people look at is stopped after so long. */
  readonly readMs: number;
}

export const defaultPatience: Patience = {
  // A heartbeat that failed by then can be sent again before the lease of its worker lapses.
  quietMs: 5_000,
  askMs: 10_000,
  // Longer than statement_timeout, and what PgBouncer lets a statement wait in line besides.
  mostMs: 60_000 + 120_000,
  readMs: 5_000,
};

const looksPerQuiet = 5;
/** The first may come at once after the verdict, and before what came meanwhile is read. */
const lastLooks = 2;

export interface SilentConnectionsOptions {
  readonly patience: Patience;
  /** Which of these work on something; null: nobody said. Throws when Postgres can't be reached. */
  readonly findBusy: (pids: readonly number[]) => Promise<ReadonlySet<number> | null>;
}

/** A connection, and what was asked and answered on it. */
interface Watched {
  readonly client: pg.PoolClient;
  asked: number;
  answered: number;
  /** Those of them that may take as long as they like: migrations. */
  scripts: number;
  /** Of its process in Postgres; null: a pooler gives it another for each transaction. */
  pid: number | null;
  isSetUp: boolean;
  /** What had come at the last look: a long answer comes in pieces. */
  came: number;
  /** Looks in a row at which somebody waited and nothing had come. */
  quietLooks: number;
  /** How many of those there had been when Postgres was asked about it and did not say. */
  unsaidAt: number;
  /** Nobody is at it any more: what was answered has so many looks left to come; null: somebody may be. */
  looksLeft: number | null;
}

/**
 * A connection can fall silent without being closed: packets are dropped, a proxy hangs. No error tells, and
 * the kernel tries for a quarter of an hour. So a look now and then finds those on which somebody waits
 * and nothing comes, and Postgres is asked over another connection whether it is still at it: how long a
 * statement takes says nothing, a migration may take an hour. If it is not, or if nobody answers there
 * either, the connection is cut here, and all goes on as when it is cut elsewhere.
 *
 * Counted in looks, not by a clock: when this process was frozen, what came meanwhile is read first.
 */
export class SilentConnections {
  readonly #options: SilentConnectionsOptions;
  readonly #lookMs: number;
  readonly #watched = new Map<pg.PoolClient, Watched>();
  #timer: NodeJS.Timeout | null = null;
  #isAsking = false;

  constructor(options: SilentConnectionsOptions) {
    this.#options = options;
    this.#lookMs = options.patience.quietMs / looksPerQuiet;
  }

  /** From when it is connected until it is closed. */
  watch(client: pg.PoolClient): void {
    const watched = { asked: 0, answered: 0, scripts: 0, pid: null, isSetUp: false };
    const looks = { quietLooks: 0, unsaidAt: 0, looksLeft: null };
    this.#watched.set(client, { client, ...watched, came: 0, ...looks });
    client.once('end', () => this.#forget(client));
    this.#timer ??= setInterval(() => this.#look(), this.#lookMs).unref();
  }

  /** It is good to use. `pid`: null behind a pooler. */
  setUp(client: pg.PoolClient, pid: number | null): void {
    const watched = this.#watched.get(client);
    if (watched !== undefined) Object.assign(watched, { pid, isSetUp: true });
  }

  /** Whatever is asked on a connection is asked in here: two additions are all that it costs. */
  async answer<T>(client: pg.PoolClient, ask: () => Promise<T>, isScript = false): Promise<T> {
    const watched = this.#watched.get(client);
    if (watched === undefined) return ask();
    watched.asked += 1;
    if (isScript) watched.scripts += 1;
    try {
      return await ask();
    } finally {
      watched.answered += 1;
      if (isScript) watched.scripts -= 1;
    }
  }

  #forget(client: pg.PoolClient): void {
    this.#watched.delete(client);
    if (this.#watched.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #look(): void {
    const suspects = [...this.#watched.values()].filter((watched) => this.#isSuspect(watched));
    if (suspects.length > 0 && !this.#isAsking) void this.#ask(suspects);
  }

  #isSuspect(watched: Watched): boolean {
    const came = cameOn(watched);
    const isQuiet = watched.asked > watched.answered && came === watched.came;
    watched.came = came;
    if (!isQuiet) {
      Object.assign(watched, { quietLooks: 0, unsaidAt: 0, looksLeft: null });
      return false;
    }
    watched.quietLooks += 1;
    if (watched.looksLeft !== null) watched.looksLeft -= 1;
    if (watched.looksLeft === 0 || this.#isOverdue(watched)) {
      this.#cut(watched);
      return false;
    }
    return this.#isQuietLong(watched);
  }

  /** While we are still sending there is nothing to answer: a slow line takes its time for a large batch. */
  #isQuietLong({ client, pid, quietLooks, unsaidAt, looksLeft }: Watched): boolean {
    const { quietMs } = this.#options.patience;
    const isSent = client.connection.stream.writableLength === 0;
    return (
      pid !== null && isSent && looksLeft === null && this.#isFor(quietLooks - unsaidAt, quietMs)
    );
  }

  #isOverdue(watched: Watched): boolean {
    const { askMs, mostMs } = this.#options.patience;
    if (!watched.isSetUp) return this.#isFor(watched.quietLooks, askMs);
    return watched.scripts === 0 && this.#isFor(watched.quietLooks, mostMs);
  }

  /** It may have been asked just before the first of the looks. */
  #isFor(looks: number, ms: number): boolean {
    return (looks - 1) * this.#lookMs >= ms;
  }

  async #ask(suspects: readonly Watched[]): Promise<void> {
    this.#isAsking = true;
    const before = suspects.map(cameOn);
    try {
      const busy = await this.#options.findBusy(suspects.flatMap(({ pid }) => pid ?? []));
      const stillQuiet = suspects.filter((one, n) => cameOn(one) === before[n]);
      if (busy === null) for (const one of stillQuiet) one.unsaidAt = one.quietLooks;
      else this.#judge(stillQuiet, busy);
    } catch {
      this.#giveUpAllQuiet();
    } finally {
      this.#isAsking = false;
    }
  }

  #judge(suspects: readonly Watched[], busy: ReadonlySet<number>): void {
    for (const watched of suspects) {
      if (watched.pid !== null && busy.has(watched.pid)) watched.quietLooks = 0;
      else watched.looksLeft = lastLooks;
    }
  }

  /** Nobody answers, here or there. A migration is given up only when Postgres says that it is over. */
  #giveUpAllQuiet(): void {
    for (const watched of this.#watched.values()) {
      const isQuiet = this.#isQuietLong(watched) && cameOn(watched) === watched.came;
      if (isQuiet && watched.scripts === 0) watched.looksLeft = lastLooks;
    }
  }

  /** All that is under way on it fails with this. */
  #cut({ client, quietLooks }: Watched): void {
    this.#forget(client);
    client.connection.stream.destroy(new SilentConnectionError(quietLooks * this.#lookMs));
  }
}

class SilentConnectionError extends Error {
  override readonly name = 'SilentConnectionError';
  readonly code = 'ETIMEDOUT';

  constructor(quietMs: number) {
    super(`Nothing came from Postgres for ${(quietMs / 1000).toFixed(1)} s`);
  }
}

function cameOn({ client, answered }: Watched): number {
  const { stream } = client.connection;
  return answered + ('bytesRead' in stream ? Number(stream.bytesRead) : 0);
}
