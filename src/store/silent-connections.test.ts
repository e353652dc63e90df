import { EventEmitter } from 'node:events';
import type pg from 'pg';
import { describe, expect, it, onTestFinished, vi } from 'vitest';

import { describeOnPostgres } from '../../test/store/support.js';
import { openHeldLine } from '../../test/support/held-line.js';
import { startPooler } from '../../test/support/pooler.js';
import { until } from '../../test/support/until.js';
import { DatabaseAwayError, type Database } from './database.js';
import { openPgDatabase } from './pg-database.js';
import { SilentConnections, type Patience } from './silent-connections.js';

describeOnPostgres('connections that fall silent', (postgres) => {
  async function open(changes: Partial<Patience> = {}, url = postgres().url) {
    const line = await openHeldLine(url);
    const lost: Error[] = [];
    const onError = (error: Error) => lost.push(error);
    const patience = { quietMs: 200, askMs: 60_000, ...changes };
    const db = await openPgDatabase({ url: line.url, poolSize: 1, patience, onError });
    onTestFinished(async () => {
      line.letGo();
      await db.close();
      await line.close();
    });
    return { db, line, lost };
  }

  const ways: [string, (db: Database, text: string) => Promise<unknown>][] = [
    ['a query', (db, text) => db.query(text)],
    ['a script', (db, text) => db.run(text)],
    ['in a transaction', (db, text) => db.transaction((tx) => tx.query(text))],
    ['in order', (db, text) => db.ordered.query(text)],
    ['an urgent one', (db, text) => db.urgent.query(text)],
  ];

  it.each(ways)('R-RE8: an answer that does not come is an outage: %s', async (_, ask) => {
    const { db, line, lost } = await open();
    const text = `select pg_sleep(0.3) as unheard`;
    const answer = ask(db, text);
    answer.catch(() => undefined);
    await until('it to be asked', () => line.hold('unheard'));
    await expect(answer).rejects.toBeInstanceOf(DatabaseAwayError);
    expect(lost).toMatchObject([{ code: 'ETIMEDOUT' }]);
    await ask(db, 'select');
    expect(lost).toHaveLength(1);
  });

  it('R-RE8: all that is under way on it fails with it', async () => {
    const { db, line } = await open();
    await db.ordered.query('select');
    const answers = [
      db.ordered.query('select pg_sleep(0.3) as unheard'),
      db.ordered.query('select 2'),
    ];
    const outcomes = Promise.allSettled(answers);
    await until('it to be asked', () => line.hold('unheard'));
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await db.ordered.query('select 3 as n')).toEqual([{ n: 3 }]);
  });

  it('R-RE8: while nobody answers, not even new connections, it is an outage', async () => {
    const { db, line } = await open({ askMs: 500 });
    line.freeze();
    await expect(db.query('select')).rejects.toBeInstanceOf(DatabaseAwayError);
    await expect(db.urgent.query('select')).rejects.toBeInstanceOf(DatabaseAwayError);
    line.letGo();
    await until('it to answer', async () => {
      return db.query('select').then(
        () => true,
        () => false,
      );
    });
  });

  it.each(ways)('what Postgres takes its time for is waited for: %s', async (_, ask) => {
    const { db, lost } = await open();
    await ask(db, `select pg_sleep(0.8)`);
    expect(lost).toEqual([]);
  });

  it('what waits for a lock is waited for, and so is what is silent between two statements', async () => {
    const { db, lost } = await open();
    const other = await postgres().open();
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const holding = other.transaction(async (tx) => {
      await tx.query('select pg_advisory_xact_lock(1)');
      await held;
    });
    const waiting = db.transaction(async (tx) => {
      await tx.run('set local lock_timeout = 0');
      await new Promise((resolve) => setTimeout(resolve, 600));
      setTimeout(release, 600);
      await tx.query('select pg_advisory_xact_lock(1)');
    });
    await Promise.all([holding, waiting]);
    expect(lost).toEqual([]);
  });

  it('R-RE8: behind a pooler nobody can be asked, and time has to do', async () => {
    const pooler = await startPooler(postgres().url);
    onTestFinished(() => pooler[Symbol.asyncDispose]());
    const { db, line, lost } = await open({ mostMs: 1_200 }, pooler.url);
    await db.query('select pg_sleep(0.6)');
    expect(lost).toEqual([]);
    const answer = db.query('select 1 as unheard from pg_sleep(0.3)');
    answer.catch(() => undefined);
    await until('it to be asked', () => line.hold('unheard'));
    await expect(answer).rejects.toBeInstanceOf(DatabaseAwayError);
    await db.query('select');
  });
});

describe('looks at connections', () => {
  /** Of 1 s each. `busy`: what Postgres says of those that it is asked about. */
  function watching(busy: () => Promise<ReadonlySet<number> | null>) {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const asked = vi.fn(busy);
    const patience = { quietMs: 5_000, askMs: 10_000, mostMs: 60_000, readMs: 5_000 };
    const silent = new SilentConnections({ patience, findBusy: asked });
    const stream = { bytesRead: 0, writableLength: 0, destroy: vi.fn() };
    const client = Object.assign(new EventEmitter(), { connection: { stream } });
    const watched = client as unknown as pg.PoolClient;
    silent.watch(watched);
    silent.setUp(watched, 7);
    void silent.answer(watched, () => new Promise(() => undefined));
    const look = async (times: number) => {
      for (let n = 0; n < times; n++) await vi.advanceTimersByTimeAsync(1_000);
    };
    return { stream, asked, look };
  }

  it('R-RE8: what is still being sent is not judged by its silence', async () => {
    const { stream, asked, look } = watching(async () => new Set());
    stream.writableLength = 1_000;
    await look(30);
    expect(asked).not.toHaveBeenCalled();
    stream.writableLength = 0;
    await look(3);
    expect(stream.destroy).toHaveBeenCalledOnce();
  });

  it('R-RE8: after the verdict what came meanwhile has a whole look to be read', async () => {
    const { stream, asked, look } = watching(async () => new Set());
    await look(6);
    expect(asked).toHaveBeenCalledOnce();
    await look(1);
    expect(stream.destroy).not.toHaveBeenCalled();
    stream.bytesRead = 10;
    await look(5);
    expect(stream.destroy).not.toHaveBeenCalled();
  });

  it('R-RE8: nobody is given up in the moment in which it turns out that nobody can be asked', async () => {
    const { stream, look } = watching(() => Promise.reject(new Error('nobody is there')));
    await look(6);
    expect(stream.destroy).not.toHaveBeenCalled();
    await look(2);
    expect(stream.destroy).toHaveBeenCalledOnce();
  });

  it('who does not say is asked again after as long, and in the end is not waited for', async () => {
    const { stream, asked, look } = watching(async () => null);
    await look(16);
    expect(asked.mock.calls.length).toBeLessThanOrEqual(3);
    expect(stream.destroy).not.toHaveBeenCalled();
    await look(50);
    expect(stream.destroy).toHaveBeenCalledOnce();
  });
});
