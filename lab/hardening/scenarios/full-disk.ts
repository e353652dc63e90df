import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { MortalPostgres } from '../../chaos/mortal-postgres.js';
import type { Lab } from '../../shared/lab.js';
import { count, judged, seconds, type Row, type Scenario } from '../../shared/scenario.js';
import { Fleet } from '../../workers/fleet.js';
import { SmallDisk } from '../small-disk.js';
import { submitOnce, tally, type SubmitAnswer } from '../submit-answers.js';

const lanes = 16;
const diskMegabytes = 160;
const processLog = join(import.meta.dirname, '../../results/processes.log');

export const fullDisk: Scenario = {
  name: 'full-disk',
  about: 'no space left where Postgres keeps its tables, then where it keeps its WAL, under load',
  run: async (lab) => {
    const postgres = await MortalPostgres.start(true);
    try {
      return await fillDisks(lab, postgres);
    } finally {
      await postgres.stop();
    }
  },
};

async function fillDisks(lab: Lab, postgres: MortalPostgres): Promise<Row[]> {
  const [row] = await ask<{ data_directory: string }>(postgres, 'show data_directory');
  const dataFolder = row?.data_directory ?? '';
  using tables = new SmallDisk(diskMegabytes, dataFolder);
  using wal = new SmallDisk(diskMegabytes, dataFolder);
  await ask(postgres, `create tablespace small location '${tables.path}'`);
  await ask(postgres, `alter role postgres set default_tablespace = small`);
  await moveWal(postgres, dataFolder, wal.path);
  await using fleet = await Fleet.start(postgres.url, { serveArgs: ['--log-level', 'info'] });
  await fleet.startWorkers([{ name: 'w', concurrency: 20 }]);
  const fullMs = lab.size(20_000, 4_000);
  const ofTables = await fillFor(fleet, fullMs, {
    fill: async () => tables.fill(),
    free: async () => tables.free(),
  });
  const ofWal = await fillFor(fleet, fullMs, {
    fill: async () => {
      wal.fill();
      // The next segment does not fit: Postgres panics.
      await ask(postgres, 'select pg_switch_wal()').catch(() => undefined);
    },
    free: async () => {
      wal.free();
      if (!(await answers(postgres))) await postgres.restart();
    },
  });
  await fleet.untilEmpty();
  return [
    ...(await rowsOf(fleet, 'tables', ofTables, fullMs)),
    ...(await rowsOf(fleet, 'WAL', ofWal, fullMs)),
  ];
}

interface Full {
  readonly before: readonly SubmitAnswer[];
  readonly during: readonly SubmitAnswer[];
  readonly after: readonly SubmitAnswer[];
  /** Statuses of /readyz while the disk was full, from a second on. */
  readonly readiness: ReadonlySet<number>;
  readonly logLines: number;
  readonly logBytes: number;
  /** From there being space again to the next submit that was accepted. */
  readonly acceptsAfterMs: number;
}

interface Disk {
  readonly fill: () => Promise<void>;
  readonly free: () => Promise<void>;
}

/** Submits all the time, before, while and after the disk is full. */
async function fillFor(fleet: Fleet, fullMs: number, disk: Disk): Promise<Full> {
  const sent: (SubmitAnswer & { readonly atMs: number })[] = [];
  let isDone = false;
  const load = Promise.all(
    Array.from({ length: lanes }, async () => {
      while (!isDone) {
        const parameters = { ms: 0, prompt: 'x'.repeat(8_000) };
        const answer = await submitOnce(fleet.url(0), { task_type: 'step', parameters });
        sent.push({ ...answer, atMs: performance.now() });
        await delay(20);
      }
    }),
  );
  await fleet.until('the load', () => tally(sent).accepted >= 100);
  await disk.fill();
  await fleet.until('a submit to be refused', () => tally(sent).refused > 0);
  const fullAtMs = performance.now();
  const logFrom = statSync(processLog).size;
  await delay(1_500);
  const readiness = new Set<number>();
  while (performance.now() - fullAtMs < fullMs) {
    readiness.add((await fetch(`${fleet.url(0)}/readyz`)).status);
    await delay(100);
  }
  const log = logOf(fleet.serverPids[0], logFrom);
  const freeAtMs = performance.now();
  await disk.free();
  const backAtMs = performance.now();
  const isAfter = ({ atMs, taskId }: (typeof sent)[number]) => atMs > freeAtMs && taskId !== null;
  await fleet.until('submits to be accepted', () => sent.filter(isAfter).length >= 100);
  isDone = true;
  await load;
  return {
    before: sent.filter(({ atMs }) => atMs < fullAtMs),
    during: sent.filter(({ atMs }) => atMs >= fullAtMs && atMs <= freeAtMs),
    after: sent.filter(({ atMs }) => atMs > freeAtMs),
    readiness,
    ...log,
    acceptsAfterMs: Math.max(0, (sent.find(isAfter)?.atMs ?? NaN) - backAtMs),
  };
}

function logOf(pid: number | undefined, from: number): Pick<Full, 'logLines' | 'logBytes'> {
  const lines = readFileSync(processLog)
    .subarray(from)
    .toString()
    .split('\n')
    .filter((line) => line.startsWith(`${pid} `));
  return { logLines: lines.length, logBytes: lines.join('\n').length };
}

async function rowsOf(fleet: Fleet, what: string, full: Full, fullMs: number): Promise<Row[]> {
  const { during, before, after, readiness, logLines, logBytes, acceptsAfterMs } = full;
  const { accepted, refused, others } = tally(during);
  const acknowledged = [...before, ...during, ...after].flatMap(({ taskId }) => taskId ?? []);
  const lost = acknowledged.length - (await countEnded(fleet, acknowledged));
  const mostLines = Math.ceil(fullMs / 1_000) + 1;
  return [
    judged(
      {
        what: `no space for ${what}: 503 with Retry-After; accepted; any other answer`,
        measured: `${count(refused)}; ${count(accepted)}; ${count(others)}`,
        numbers: { refused, accepted, others },
      },
      'some; any; 0',
      refused > 0 && others === 0,
    ),
    judged(
      {
        what: 'answers of /readyz meanwhile',
        measured: [...readiness].join(', '),
        numbers: { readiness: [...readiness] },
      },
      '503',
      [...readiness].join() === '503',
    ),
    judged(
      {
        what: `lines in the log of the server in ${seconds(fullMs, 0)}; bytes`,
        measured: `${count(logLines)}; ${count(logBytes)}`,
        numbers: { logLines, logBytes },
      },
      `at most ${mostLines}`,
      logLines <= mostLines,
    ),
    judged(
      {
        what: 'acknowledged in all; of these lost',
        measured: `${count(acknowledged.length)}; ${count(lost)}`,
        numbers: { acknowledged: acknowledged.length, lost },
      },
      'all; 0',
      lost === 0,
    ),
    judged(
      {
        what: 'from there being space to the next submit that is accepted',
        measured: seconds(acceptsAfterMs),
        numbers: { acceptsAfterMs },
      },
      'within 10 s',
      acceptsAfterMs < 10_000,
    ),
  ];
}

async function countEnded(fleet: Fleet, taskIds: readonly string[]): Promise<number> {
  const [row] = await fleet.database.query<{ count: number }>(
    `select count(distinct id)::integer as count from sluice.task_history
     where status = 'completed' and id = any($1::uuid[])`,
    [taskIds],
  );
  return row?.count ?? 0;
}

/** While Postgres is down. */
async function moveWal(postgres: MortalPostgres, dataFolder: string, to: string): Promise<void> {
  await postgres.kill();
  const from = join(dataFolder, 'pg_wal');
  execFileSync('sh', ['-c', `cp -a "$0"/. "$1" && rm -r "$0" && ln -s "$1" "$0"`, from, to]);
  await postgres.restart();
}

async function answers(postgres: MortalPostgres): Promise<boolean> {
  const deadlineMs = performance.now() + 5_000;
  while (performance.now() < deadlineMs) {
    const isThere = await ask(postgres, 'select').then(
      () => true,
      () => false,
    );
    if (isThere) return true;
    await delay(100);
  }
  return false;
}

async function ask<R extends object>({ url }: MortalPostgres, statement: string): Promise<R[]> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return (await client.query<R>(statement)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}
