import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { Client } from 'pg';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';

import { openEngine, type Engine } from '../../src/engine/open-engine.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { until } from '../support/until.js';

const program = join(import.meta.dirname, 'fixtures/replica.mjs');
const queue = 'shared';
/** Nobody takes longer to take over: see the issue of a leader that dies. */
const takeOverMs = 8_000;
const patiently = { deadlineMs: 60_000, everyMs: 50 };

interface Run {
  readonly task_id: string;
  readonly process: string;
  readonly started_ms: number;
  readonly ended_ms: number;
}

describe('three processes on one Postgres, without Redis', () => {
  let database: TestDatabase;
  let observer: Engine;
  let client: Client;
  const replicas = new Map<string, ChildProcess>();

  beforeEach(async () => {
    if (inject('distIsStale')) throw new Error('dist is older than src: npm run build');
    database = await createTestDatabase();
    client = new Client({ connectionString: database.url });
    await client.connect();
    await client.query(
      'create table public.runs (task_id uuid, process text, started_ms float8, ended_ms float8)',
    );
    observer = await openEngine({
      database: { kind: 'postgres', url: database.url },
      role: 'submit',
    });
  });

  afterEach(async () => {
    for (const replica of replicas.values()) replica.kill('SIGKILL');
    replicas.clear();
    await observer.close();
    await client.end();
    await database.drop();
  });

  /** The first of them leads. */
  async function start(...names: readonly string[]): Promise<void> {
    for (const name of names) {
      const replica = spawn(process.execPath, [program, database.url, name, queue], {
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      });
      replicas.set(name, replica);
      await once(replica, 'message');
    }
  }

  async function submit(name: string, count: number, ms: number): Promise<void> {
    const replica = replicas.get(name);
    if (replica === undefined) throw new Error(`${name} was not started`);
    replica.send({ count, ms });
    await once(replica, 'message');
  }

  async function ask<Row>(text: string): Promise<Row[]> {
    return (await client.query(text)).rows as Row[];
  }

  async function count(text: string): Promise<number> {
    return Number((await ask<{ count: string }>(text))[0]?.count);
  }

  const countCompleted = () =>
    count(`select count(*) from sluice.task_history where status = 'completed'`);
  const listRuns = () => ask<Run>('select * from public.runs order by started_ms');

  async function untilCompleted(total: number): Promise<void> {
    await until(
      `${total} tasks to complete`,
      async () => (await countCompleted()) >= total,
      patiently,
    );
    expect(await countCompleted()).toBe(total);
    expect(await count('select count(*) from sluice.tasks')).toBe(0);
  }

  it('R-CH12, R-CH4, R-CH6: share the work, and hold limits and max_concurrency together', async () => {
    await start('a', 'b', 'c');
    await submit('a', 900, 50);
    await untilCompleted(900);
    const shared = await listRuns();
    expect(shared).toHaveLength(900);
    for (const name of ['a', 'b', 'c']) {
      const share = shared.filter((run) => run.process === name).length / 900;
      expect(share).toBeGreaterThan(0.23);
      expect(share).toBeLessThan(0.43);
    }

    await client.query('delete from public.runs');
    await observer.putQueue(queue, { maxConcurrency: 6 });
    await Promise.all(['a', 'b', 'c'].map((name) => submit(name, 100, 20)));
    await untilCompleted(1_200);
    const bounded = await listRuns();
    expect(new Set(bounded.map((run) => run.task_id)).size).toBe(300);
    expect(bounded).toHaveLength(300);
    expect(mostAtOnce(bounded)).toBeLessThanOrEqual(6);

    await client.query('delete from public.runs');
    const limit = { unit: 'requests', rate: 100, perSeconds: 1, burst: 20 };
    await observer.changeQueue(queue, { maxConcurrency: null, limits: [limit] });
    await submit('b', 300, 1);
    await untilCompleted(1_500);
    const limited = await listRuns();
    const spanMs = (limited.at(-1)?.started_ms ?? 0) - (limited[0]?.started_ms ?? 0);
    // Grants come before runs, and a run may begin a little late: less than a tenth of a second here.
    expect(limited).toHaveLength(300);
    expect(spanMs).toBeGreaterThanOrEqual(2_700);
  });

  it('R-CH12, R-RE8: the leader is killed under load: nothing is lost or completed twice', async () => {
    await start('a', 'b', 'c');
    const submitting = ['b', 'c'].map((name) => submit(name, 2_000, 10));
    await until('some to run', async () => (await countCompleted()) > 300, patiently);
    const killedMs = Date.now();
    replicas.get('a')?.kill('SIGKILL');
    await Promise.all(submitting);
    // What a follower took with an answer of the dead one may run on: later starts are of the next leader.
    const isGoingOn = () =>
      count(`select count(*) from public.runs where started_ms > ${killedMs + 1_000}`);
    await until('work to go on', async () => (await isGoingOn()) > 20, patiently);
    expect(Date.now() - killedMs).toBeLessThan(takeOverMs + 1_000);
    await submit('b', 100, 1);
    // Those of the dead process come back with its leases: 30 s, and a few more.
    await untilCompleted(4_100);
    const runs = await listRuns();
    const twice = runs.length - new Set(runs.map((run) => run.task_id)).size;
    // Only what the dead process ran and had not reported may run again.
    expect(twice).toBeLessThanOrEqual(20);
  });

  it('R-CH12: a leader that is frozen beyond its lease follows when it wakes', async () => {
    await start('a', 'b', 'c');
    await submit('a', 100, 1);
    await untilCompleted(100);
    const a = replicas.get('a');
    a?.kill('SIGSTOP');
    const frozenMs = Date.now();
    await submit('b', 100, 1);
    await untilCompleted(200);
    expect(Date.now() - frozenMs).toBeLessThan(takeOverMs + 2_000);
    const [before] = await ask<{ holder: string }>('select holder from sluice.serving');
    a?.kill('SIGCONT');
    await submit('a', 100, 1);
    await submit('c', 100, 1);
    await untilCompleted(400);
    await delay(500);
    const [after] = await ask<{ holder: string }>('select holder from sluice.serving');
    expect(after).toEqual(before);
    expect(await listRuns()).toHaveLength(400);
  });
});

function mostAtOnce(runs: readonly Run[]): number {
  const events = runs.flatMap(({ started_ms, ended_ms }) => [
    { at: started_ms, by: 1 },
    { at: ended_ms, by: -1 },
  ]);
  let now = 0;
  let most = 0;
  for (const { by } of events.toSorted((a, b) => a.at - b.at || a.by - b.by)) {
    now += by;
    most = Math.max(most, now);
  }
  return most;
}
