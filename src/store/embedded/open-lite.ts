import { PGlite, type PGliteOptions } from '@electric-sql/pglite';

import { turnGiver } from '../../runtime/turns.js';
import { boundedReads } from '../bounded-reads.js';
import { sessionSettings, type Database, type Queryable } from '../database.js';
import { translate } from '../failures.js';
import { defaultPatience } from '../silent-connections.js';
import { checkpointsOf, defaultWalBytes } from './checkpoints.js';
import { optimizeLater } from './wasm-tiers.js';

const setUp = Object.entries(sessionSettings)
  .map(([name, value]) => `set ${name} = ${value};`)
  .join('\n');

/**
 * PGlite writes zeros over all shared memory when it starts, so every byte of it is resident. The default
 * of 128 MB is half of what an idle process would use; the operating system caches the files anyway.
 */
export const startParameters: readonly string[] = [
  ...PGlite.defaultStartParams,
  ...['-c', 'shared_buffers=16MB'],
];

export interface LiteOptions {
  /** Default: 64 MB of WAL. */
  readonly checkpointAfterBytes?: number | undefined;
  readonly onClosed?: () => void;
}

/** Embedded Postgres on the files that `options` name. It has one connection, so calls run one after the other. */
export async function openLite(
  options: PGliteOptions,
  { checkpointAfterBytes = defaultWalBytes, onClosed }: LiteOptions = {},
): Promise<Database> {
  optimizeLater();
  const lite = await PGlite.create({ startParams: [...startParameters], ...options });
  await lite.exec(setUp);
  const direct = queryable(lite);
  // PGlite answers within the microtasks of whoever asks.
  const giveWay = turnGiver();
  const noteStatement = checkpointsOf(lite, checkpointAfterBytes);
  const query: Queryable['query'] = async <Row>(text: string, parameters?: readonly unknown[]) => {
    const rows = await direct.query<Row>(text, parameters);
    noteStatement();
    await giveWay();
    return rows;
  };
  return {
    query,
    ordered: { query },
    run: (script) => direct.run(script),
    urgent: direct,
    vital: { ...direct, query },
    // One connection: no read may wait in its line behind another, since heartbeats wait in the same one.
    reads: boundedReads({ ...direct, query }, { max: 1, readMs: defaultPatience.readMs }),
    transaction: async (work) => {
      const result = await translated(
        lite.transaction((transaction) => work(queryable(transaction))),
      );
      noteStatement();
      await giveWay();
      return result;
    },
    isExclusive: true,
    // The same process, the same clock.
    nowMs: () => Date.now(),
    close: async () => {
      if (!lite.closed) await lite.close();
      onClosed?.();
    },
  };
}

function queryable(connection: Pick<PGlite, 'query' | 'exec'>): Queryable {
  return {
    query: async <Row>(text: string, parameters?: readonly unknown[]) => {
      const values = parameters as unknown[] | undefined;
      return (await translated(connection.query<Row>(text, values))).rows;
    },
    run: async (script) => {
      await translated(connection.exec(script));
    },
  };
}

async function translated<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw translate(error);
  }
}
