import { DatabaseAwayError, type Database, type Queryable } from './database.js';
import { codeOf } from './failures.js';

/** An outage is over when no statement has met it for so long. */
const rememberedMs = 5_000;

export interface WatchedDatabase {
  readonly watched: Database;
  /** Our sentence for why Postgres refuses writes, while statements meet that; else null. */
  readonly outage: () => string | null;
}

/**
 * Remembers that writes were refused for want of disk space, memory or connections, or since Postgres is read-only.
 * A small write may still fit where a large one does not, so each statement may be the one to find out.
 */
export function watchOutages(db: Database): WatchedDatabase {
  let last: { readonly sentence: string; readonly atMs: number } | null = null;
  const note = (error: unknown): void => {
    if (!(error instanceof DatabaseAwayError) || !refusesWrites(codeOf(error.cause))) return;
    last = { sentence: error.message, atMs: performance.now() };
  };
  const noted = async <T>(answer: Promise<T>): Promise<T> => {
    try {
      return await answer;
    } catch (error) {
      note(error);
      throw error;
    }
  };
  const query = (on: Pick<Queryable, 'query'>): Queryable['query'] => {
    return (text, parameters) => noted(on.query(text, parameters));
  };
  return {
    watched: {
      ...db,
      query: query(db),
      ordered: { query: query(db.ordered) },
      transaction: (work) => noted(db.transaction(work)),
    },
    outage: () =>
      last !== null && performance.now() - last.atMs < rememberedMs ? last.sentence : null,
  };
}

/** Not 57014: a read of somebody's that took too long says nothing about writes. */
function refusesWrites(code: string): boolean {
  return code.startsWith('53') || code === '25006' || code === '58030';
}
