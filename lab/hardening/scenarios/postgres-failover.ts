import { setTimeout as delay } from 'node:timers/promises';
import { startPostgres, startStandby } from '../../../test/support/services/postgres-server.js';
import type { MortalServer } from '../../../test/support/services/throw-away-server.js';
import { until } from '../../../test/support/until.js';
import { Caller } from '../../recovery/caller.js';
import { count, judged, seconds, type Row, type Scenario } from '../../shared/scenario.js';
import { ask, OneServer } from '../one-server.js';

const stepMs = 50;
const concurrency = 50;
/** How long nobody accepts writes. */
const headlessMs = 3_000;

export const postgresFailover: Scenario = {
  name: 'postgres-failover',
  about:
    'A primary under load fails (killed; then, in another run, made read-only), and its standby is promoted 3 s later; the URL names both',
  run: async (lab) => {
    const load = lab.size(20_000, 2_000);
    return [
      ...rowsOf('killed', await failOver('killed', load)),
      ...rowsOf('read-only', await failOver('read-only', load)),
    ];
  },
};

type Fault = 'killed' | 'read-only';

interface FailedOver {
  readonly acknowledged: number;
  readonly acknowledgedAfter: number;
  readonly lost: number;
  readonly left: number;
  readonly mostRetries: number;
  readonly refused: number;
  readonly others: number;
  readonly survivors: number;
  /** From the promotion to the next acknowledgement, and to the next begin of a task. */
  readonly acceptsAfterMs: number;
  readonly runsAfterMs: number;
}

async function failOver(fault: Fault, loadMs: number): Promise<FailedOver> {
  const primary = await startPostgres({ mortal: true, durable: true });
  const standby = await startStandby(primary.url);
  try {
    // What is acknowledged is on both.
    await ask(primary.url, `alter system set synchronous_standby_names = '*'`);
    await ask(primary.url, 'select pg_reload_conf()');
    return await measure(fault, loadMs, primary, standby);
  } finally {
    await standby.stop();
    await primary.stop();
  }
}

async function measure(
  fault: Fault,
  loadMs: number,
  primary: MortalServer,
  standby: MortalServer,
): Promise<FailedOver> {
  const hosts = [primary, standby].map(({ url }) => new URL(url).host).join(',');
  const url = `postgres://postgres@${hosts}/postgres?target_session_attrs=read-write`;
  await using server = await OneServer.start(['--database-url', url]);
  for (const name of ['a', 'b']) await server.startWorker(name, concurrency);
  const { pids } = server;
  const caller = new Caller(server.url, stepMs);
  await delay(loadMs);
  await fail(primary, fault);
  await delay(headlessMs);
  await ask(standby.url, 'select pg_promote()');
  const promotedAt = Date.now();
  const after = () => [...caller.acknowledged.values()].filter((at) => at >= promotedAt);
  await until('a hundred more to be acknowledged', () => after().length >= 100);
  await delay(loadMs / 2);
  await caller.stop();
  const living = () => ask<Living>(standby.url, livingSql);
  await until('all tasks to end', async () => (await living())[0]?.left === 0);
  return {
    ...(await readEnd(standby.url, [...caller.acknowledged.keys()])),
    acknowledged: caller.acknowledged.size,
    acknowledgedAfter: after().length,
    refused: caller.refused,
    others: [...caller.others.values()].reduce((sum, n) => sum + n, 0),
    survivors: pids.filter(isThere).length,
    acceptsAfterMs: Math.min(...after()) - promotedAt,
    runsAfterMs:
      (server.notes().find(({ what, at }) => what === 'began' && at >= promotedAt)?.at ?? NaN) -
      promotedAt,
  };
}

async function fail(primary: MortalServer, fault: Fault): Promise<void> {
  if (fault === 'killed') {
    await primary.kill('SIGQUIT');
    return;
  }
  await ask(primary.url, 'alter system set default_transaction_read_only = on');
  await ask(primary.url, 'select pg_reload_conf()');
}

interface Living {
  readonly left: number;
}

const livingSql = 'select count(*)::integer as left from sluice.tasks';

async function readEnd(
  url: string,
  taskIds: readonly string[],
): Promise<Pick<FailedOver, 'lost' | 'left' | 'mostRetries'>> {
  const [row] = await ask<{ completed: number; left: number; mostRetries: number }>(
    url,
    `select
       (select count(distinct id)::integer from sluice.task_history
        where status = 'completed' and id = any($1::uuid[])) as completed,
       (select count(*)::integer from sluice.tasks) as left,
       (select coalesce(max(retry_count), 0)::integer from sluice.task_history) as "mostRetries"`,
    [taskIds],
  );
  if (row === undefined) throw new Error('an aggregate without groups answered no row');
  return { lost: taskIds.length - row.completed, left: row.left, mostRetries: row.mostRetries };
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function rowsOf(fault: Fault, run: FailedOver): Row[] {
  const { acknowledged, lost, left, refused, others, mostRetries, survivors } = run;
  const { acceptsAfterMs, runsAfterMs } = run;
  return [
    judged(
      {
        what: `primary ${fault}: acknowledged; of these lost; left in the end`,
        measured: `${count(acknowledged)}; ${count(lost)}; ${count(left)}`,
        numbers: { acknowledged, lost, left },
      },
      'all; 0; 0',
      lost === 0 && left === 0,
    ),
    judged(
      {
        what: `primary ${fault}: submits refused with 503 and Retry-After; answered in any other way`,
        measured: `${count(refused)}; ${count(others)}`,
        numbers: { refused, others },
      },
      'all; 0',
      refused > 0 && others === 0,
    ),
    judged(
      {
        what: `primary ${fault}: most retries of a task; server and workers that went on`,
        measured: `${count(mostRetries)}; ${count(survivors)}`,
        numbers: { mostRetries, survivors },
      },
      '0; 3',
      mostRetries === 0 && survivors === 3,
    ),
    judged(
      {
        what: `primary ${fault}: from the promotion to the next acknowledgement; to the next begin of a task`,
        measured: `${seconds(acceptsAfterMs)}; ${seconds(runsAfterMs)}`,
        numbers: { acceptsAfterMs, runsAfterMs },
      },
      '≤ 5 s; ≤ 5 s',
      acceptsAfterMs <= 5_000 && runsAfterMs <= 5_000,
    ),
  ];
}
