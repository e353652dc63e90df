import { onTestFinished } from 'vitest';

import { openEngine, type Engine } from '../../src/engine/open-engine.js';
import type { EngineSettings } from '../../src/engine/settings.js';
import type { Patience } from '../../src/store/silent-connections.js';
import { openHeldLine, type HeldLine } from '../support/held-line.js';
import { until } from '../support/until.js';
import { quickTicks, type TestServer } from './support.js';

/**
 * Until the end of the test, an engine whose connections to Postgres can be held or cut. Answers that are held
 * come late; with less patience they are given up.
 */
export async function openOnHeldLine(
  server: TestServer,
  redisUrl?: string,
  patience: Partial<Patience> = { quietMs: 600_000 },
  settings: Partial<EngineSettings> = { leaseMs: 600_000 },
): Promise<{ readonly engine: Engine; readonly line: HeldLine }> {
  const line = await openHeldLine(server.url);
  const engine = await openEngine({
    database: { kind: 'postgres', url: line.url, patience },
    settings: { ...quickTicks, ...settings },
    ...(redisUrl === undefined ? {} : { redisUrl }),
  });
  onTestFinished(async () => {
    line.letGo();
    await engine.close();
    await line.close();
    await server.sql('delete from sluice.serving');
  });
  return { engine, line };
}

/** Until the end of the test, what changes this task in this way takes so long in Postgres. */
export async function stall(
  server: TestServer,
  taskId: string,
  change: 'claim' | 'end' | 'completion',
  seconds = 1,
): Promise<void> {
  onTestFinished(() => letGo(server));
  await server.sql(`
    create or replace function public.stall() returns trigger language plpgsql as $$
    begin
      perform pg_sleep(${String(seconds)});
      return coalesce(new, old);
    end $$`);
  await server.sql(`
    create trigger stalls before ${change === 'completion' ? 'delete' : 'update'} on sluice.tasks
    for each row when (old.id = '${taskId}' and ${conditions[change]})
    execute function public.stall()`);
}

/**
 * What deletes tasks waits before it looks at any of them, and counts as having begun: who changes one
 * meanwhile was first. Answers with how to let it go on.
 */
export async function stallDeletes(server: TestServer): Promise<() => Promise<void>> {
  onTestFinished(() => letGo(server));
  const holder = await server.connect();
  await holder.query('select pg_advisory_lock(1)');
  await server.sql(`
    create or replace function public.stall() returns trigger language plpgsql as $$
    begin
      -- Not the lock itself: who waits for one longer than a moment is told so and tries again.
      while not pg_try_advisory_xact_lock_shared(1) loop
        perform pg_sleep(0.01);
      end loop;
      return null;
    end $$`);
  await server.sql(`
    create trigger stalls before delete on sluice.tasks
    for each statement execute function public.stall()`);
  return async () => {
    await holder.query('select pg_advisory_unlock(1)');
    await letGo(server);
  };
}

const conditions = {
  claim: `new.status = 'executing'`,
  end: `old.status = 'executing'`,
  completion: `old.status = 'executing'`,
};

export async function letGo(server: TestServer): Promise<void> {
  await server.sql('drop trigger if exists stalls on sluice.tasks');
}

export async function untilStalled(server: TestServer): Promise<void> {
  await until('a statement to stall', async () => {
    const rows = await server.sql(
      `select from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()`,
    );
    return rows.length > 0;
  });
}
