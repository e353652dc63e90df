import pg from 'pg';

import { parsePostgresUrl } from '../runtime/postgres-url.js';

/** Who a connection is shared with. Statement pooling is refused when the database is opened. */
export type Pooling = 'none' | 'session' | 'transaction';

const rounds = 5;
const connectMs = 5_000;
/** In session mode the second connection may have to wait until the first one ends. */
const answerMs = 2_000;

/** Asks the first host that answers. */
export async function findPooling(url: string): Promise<Pooling> {
  let failure: unknown = new Error('no host is named');
  for (const one of parsePostgresUrl(url)?.urls ?? []) {
    const clients: [pg.Client, pg.Client] = [newClient(one), newClient(one)];
    try {
      for (const client of clients) await client.connect();
      return await judge(clients);
    } catch (error) {
      failure = error;
    } finally {
      for (const client of clients) client.end().catch(() => undefined);
    }
  }
  throw failure;
}

/**
 * A pooler names a process of its own, not that of Postgres. Two connections that reach one process
 * of Postgres by turns share it between transactions.
 */
async function judge([one, other]: readonly [pg.Client, pg.Client]): Promise<Pooling> {
  const named = 'processID' in one ? one.processID : null;
  if ((await processOf(one)) === named) return 'none';
  for (let round = 0; round < rounds; round += 1) {
    const pid = await processOf(other);
    if (pid === null) return 'session';
    if (pid === (await processOf(one))) return 'transaction';
  }
  return 'session';
}

function newClient(url: string): pg.Client {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'sluice',
    connectionTimeoutMillis: connectMs,
  });
  client.on('error', () => undefined);
  return client;
}

/** Null: it is not answered in time. */
async function processOf(client: pg.Client): Promise<number | null> {
  const asked = client.query<{ pid: number }>('select pg_backend_pid() as pid');
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), answerMs);
  });
  try {
    const answer = await Promise.race([asked, late]);
    return answer?.rows[0]?.pid ?? null;
  } finally {
    clearTimeout(timer);
    asked.catch(() => undefined);
  }
}
