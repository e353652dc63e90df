import { inject } from 'vitest';
import { connect } from '../../src/client/connect.js';
import { defineTask } from '../../src/client/define-task.js';
import type { Sluice } from '../../src/client/sluice.js';
import type { Scope } from '../../src/domain/scopes.js';
import { silentLog } from '../../src/runtime/log.js';
import { serve, type RunningServer } from '../../src/server/serve.js';
import { NonRetriableError } from '../../src/worker/errors.js';
import { createTestDatabase } from '../support/postgres.js';
import { getFreePort } from '../support/services/free-port.js';
import { until } from '../support/until.js';

/** Ends when it is told to. */
export const long = defineTask({
  type: 'long',
  run: (_input, { signal }) =>
    new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(new Error('stopped')), { once: true });
    }),
});
export const quick = defineTask({ type: 'quick', run: () => ({ text: 'done' }) });
let isMended = false;
const broken = defineTask({
  type: 'broken',
  run: () => {
    if (isMended) return 'mended';
    throw new NonRetriableError('no such model');
  },
});

export function mend(): void {
  isMended = true;
}

const roles = {
  admin: ['admin'],
  reader: ['read'],
  submitter: ['read', 'submit'],
  blind: ['submit'],
} as const satisfies Record<string, readonly Scope[]>;

/** Two servers of one database and one Redis. People look at the first; the worker is at the second. */
export interface ServedStand {
  /** The address of the first, which outlives it. */
  readonly url: string;
  readonly sluice: Sluice;
  readonly keys: Readonly<Record<keyof typeof roles, string>>;
  /** Ends the first server and starts another at its address. */
  restart(meanwhile: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

export async function openServedStand(): Promise<ServedStand> {
  const database = await createTestDatabase();
  const port = await getFreePort();
  const start = (at: number) =>
    serve({
      host: '127.0.0.1',
      port: at,
      database: { kind: 'postgres', url: database.url },
      redisUrl: inject('redisUrl'),
      environment: 'testing',
      alertIntervalMs: 200,
    });
  let first = await start(port);
  const second = await start(0);
  const keys = Object.fromEntries(
    await Promise.all(
      Object.entries(roles).map(async ([name, scopes]) => {
        const { key } = await first.engine.createKey({ name, scopes });
        return [name, key] as const;
      }),
    ),
  ) as Record<keyof typeof roles, string>;
  const sluice = connect(second.url, { apiKey: keys.admin });
  await fill(sluice, second);
  return {
    url: first.url,
    sluice,
    keys,
    restart: async (meanwhile) => {
      await first.close();
      await meanwhile();
      first = await start(port);
    },
    close: async () => {
      await sluice.close();
      await Promise.all([first.close(), second.close()]);
      await database.drop();
    },
  };
}

/** A worker, queues with work that is done, and three dead letters. */
async function fill(sluice: Sluice, { engine }: RunningServer): Promise<void> {
  const worker = sluice.worker([long, quick, broken], {
    concurrency: 10,
    name: 'worker-1',
    log: silentLog,
  });
  await worker.start();
  await sluice.queue('gpt-4o').change({ limits: { rpm: 600 }, maxConcurrency: 5 });
  for (const queue of ['gpt-4o', 'claude', 'embeddings']) {
    await sluice.submitMany(
      quick,
      Array.from({ length: 20 }, (_, n) => ({ input: { n }, options: { queue } })),
    );
  }
  await sluice.submitMany(
    broken,
    Array.from({ length: 3 }, () => ({ input: {}, options: { queue: 'claude' } })),
  );
  await until('three dead letters', async () => {
    return (await engine.listDeadLetters({ queue: 'claude' })).totalCount === 3;
  });
}
