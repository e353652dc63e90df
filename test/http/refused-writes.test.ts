import { setTimeout as delay } from 'node:timers/promises';

import { expect, it, onTestFinished } from 'vitest';

import { createLog } from '../../src/runtime/log.js';
import { serve } from '../../src/server/serve.js';
import { describeOnPostgres, type TestServer } from '../integration/support.js';
import { until } from '../support/until.js';

interface Line {
  readonly left_out?: number;
  readonly msg: string;
  readonly err?: { readonly message: string; readonly stack?: string };
}

interface Answer {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly detail: string;
}

/** As Postgres says it. A trigger raises it, since a test can't fill a disk everywhere: the lab does that. */
const raised = { code: '53100', detail: 'Postgres has no disk space left' };
const refusedForMs = 1_300;

describeOnPostgres('writes that Postgres refuses', (server) => {
  it('R-HA2: a full disk is an outage: 503 with Retry-After, not ready, one line a second', async () => {
    const there = await open(server());
    await server().sql(`
      create function public.refuse() returns trigger language plpgsql as $$
      begin
        raise exception 'could not extend file "base/5/1"' using errcode = '${raised.code}';
      end $$`);
    await server().sql(
      `create trigger refuses before insert on sluice.tasks execute function public.refuse()`,
    );
    const heal = () => server().sql('drop function public.refuse() cascade');
    await there.isAnOutage(raised.detail, heal);
  });

  it('R-HA2: a Postgres that became read-only is an outage, for those who only read it too', async () => {
    const there = await open(server());
    await setReadOnly(server(), 'on');
    onTestFinished(() => setReadOnly(server(), 'off'));
    await there.isAnOutage(
      'Postgres is read-only: it is a replica, or a failover is under way',
      () => setReadOnly(server(), 'off'),
    );
  });

  it('R-HA2, R-CH12: a second server is ready at once, and a probe of it logs nothing', async () => {
    await server().open();
    const there = await open(server());
    const before = there.lines.length;
    for (let probe = 0; probe < 5; probe++) {
      expect(await there.ask('/readyz')).toMatchObject({ status: 200 });
    }
    expect(there.lines.slice(before)).toEqual([]);
  });
});

async function setReadOnly(server: TestServer, value: 'on' | 'off'): Promise<void> {
  const name = new URL(server.url).pathname.slice(1);
  const client = await server.connect();
  await client.query(`set default_transaction_read_only = off`);
  await client.query(`alter database ${name} set default_transaction_read_only = ${value}`);
  await client.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and application_name = 'sluice'`,
  );
}

async function open(server: TestServer): Promise<Refusing> {
  const lines: Line[] = [];
  const log = createLog('info', { write: (text) => void lines.push(JSON.parse(text) as Line) });
  const where = { host: '127.0.0.1', port: 0, log } as const;
  const running = await serve({ ...where, database: { kind: 'postgres', url: server.url } });
  onTestFinished(async () => {
    await running.close();
    await server.sql('delete from sluice.serving');
  });
  return new Refusing(running.url, lines);
}

class Refusing {
  readonly lines: Line[];
  readonly #url: string;

  constructor(url: string, lines: Line[]) {
    this.#url = url;
    this.lines = lines;
  }

  async isAnOutage(detail: string, heal: () => Promise<unknown>): Promise<void> {
    const beganMs = performance.now();
    const before = this.lines.length;
    const answers: Answer[] = [];
    const submit = async () => {
      while (performance.now() - beganMs < refusedForMs) {
        answers.push(await this.ask('/api/v1/tasks', { task_type: 'noop' }));
        await delay(5);
      }
    };
    await Promise.all(Array.from({ length: 8 }, submit));
    expect(answers.length).toBeGreaterThan(16);
    const kinds = answers.map(({ status, retryAfter }) => `${status} ${String(retryAfter)}`);
    expect(new Set(kinds)).toEqual(new Set(['503 1']));
    const told = new Set(answers.map((answer) => answer.detail.split('. ')[0]));
    expect([...told]).toContain(detail);
    expect(await this.ask('/readyz')).toMatchObject({ status: 503, retryAfter: '1', detail });
    const seconds = Math.ceil((performance.now() - beganMs) / 1_000);
    const lines = this.lines.slice(before);
    expect(lines.length).toBeLessThanOrEqual(seconds + 1);
    expect(lines.some(({ left_out: leftOut = 0 }) => leftOut > 3)).toBe(true);
    expect(JSON.stringify(lines)).not.toContain('"stack"');

    await heal();
    const accepted = () => this.ask('/api/v1/tasks', { task_type: 'noop' });
    await until('a submit', async () => (await accepted()).status === 201);
    await until('it to be ready', async () => (await this.ask('/readyz')).status === 200);
  }

  async ask(path: string, body?: object): Promise<Answer> {
    const response = await fetch(`${this.#url}${path}`, {
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      headers: { 'content-type': 'application/json' },
    });
    const { detail = '' } = (await response.json()) as { readonly detail?: string };
    return { status: response.status, retryAfter: response.headers.get('retry-after'), detail };
  }
}
