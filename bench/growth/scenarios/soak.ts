import { setTimeout as delay } from 'node:timers/promises';
import { Cluster } from '../../../lab/limits/cluster.js';
import type { Lab } from '../../../lab/shared/lab.js';
import { count, judged, ms, noted, type Row, type Scenario } from '../../../lab/shared/scenario.js';
import { priorities } from '../../../src/domain/priority.js';
import type { TaskDraft } from '../../../src/protocol/tasks-api.js';
import { ProcessTree } from '../../../lab/shared/process-tree.js';
import { postgresProcesses } from '../postgres-processes.js';
import { openFiles, soakRows, type Sample } from '../soak-samples.js';

const submitEveryMs = 100;
const samplesWanted = 120;
const queues = 10;

export const soak: Scenario = {
  name: 'soak',
  about:
    'two servers, Redis and four workers at a steady load: memory, open files, dead tuples stay as they are',
  run: async (lab) => {
    const soakMs = lab.number('soak-minutes') * 60_000;
    await using cluster = await Cluster.start(lab.postgresUrl, { servers: 2, ready: 'redis' });
    await cluster.startWorkers({ workers: 4, concurrency: 50 });
    const ending = new AbortController();
    const submitting = submitUntil(cluster, lab.size(500, 100), ending.signal);
    const began = new Date();
    try {
      const samples = await sampleFor(lab, cluster, soakMs);
      ending.abort();
      return [
        await doneRow(cluster, await submitting),
        ...soakRows(samples),
        await waitsRow(cluster, began, new Date()),
      ];
    } finally {
      ending.abort();
    }
  },
};

interface Submitted {
  readonly accepted: number;
  readonly refused: number;
}

/** So many a second, by turns to either server; some with a key, some delayed, of all priorities. */
async function submitUntil(
  cluster: Cluster,
  perSecond: number,
  signal: AbortSignal,
): Promise<Submitted> {
  const size = (perSecond * submitEveryMs) / 1000;
  const beganMs = performance.now();
  let batches = 0;
  let refused = 0;
  while (!signal.aborted) {
    const drafts = Array.from({ length: size }, (_, index) => draft(batches * size + index));
    // A busy machine may refuse some: that is told, and the soak goes on.
    await cluster.submit(drafts, batches % 2).catch(() => {
      refused += size;
    });
    batches += 1;
    await delay(Math.max(0, beganMs + batches * submitEveryMs - performance.now()));
  }
  return { accepted: batches * size - refused, refused };
}

function draft(index: number): TaskDraft {
  return {
    taskType: 'noop',
    queue: `soak-${index % queues}`,
    priority: priorities[index % priorities.length] ?? 'medium',
    parameters: { index },
    ...(index % 10 === 0 ? { idempotencyKey: `soak-${index}` } : {}),
    ...(index % 25 === 0 ? { delaySeconds: 2 } : {}),
  };
}

async function sampleFor(lab: Lab, cluster: Cluster, soakMs: number): Promise<Sample[]> {
  const postgres = await postgresProcesses(cluster.database);
  const everyMs = soakMs / samplesWanted;
  const beganMs = performance.now();
  const samples: Sample[] = [];
  await lab.progress.until('samples', samplesWanted, async () => {
    if (performance.now() - beganMs >= (samples.length + 1) * everyMs) {
      samples.push(await look(cluster, postgres));
    }
    return samples.length;
  });
  return samples;
}

async function look(cluster: Cluster, postgres: ProcessTree): Promise<Sample> {
  const { serverPids, workerPids, database } = cluster;
  const [row] = await database.query<{ connections: number; dead: number; bytes: number }>(lookSql);
  if (row === undefined) throw new Error('Postgres did not answer');
  return {
    serverMegabytes: megabytesOf(serverPids),
    workerMegabytes: megabytesOf(workerPids),
    postgresMegabytes: postgres.megabytes(),
    serverFiles: openFiles(serverPids),
    workerFiles: openFiles(workerPids),
    connections: row.connections,
    deadTuples: row.dead,
    liveTablesMegabytes: row.bytes / 2 ** 20,
  };
}

function megabytesOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + new ProcessTree(pid).megabytes(), 0);
}

/** What ended is kept, and grows by design; what lives comes and goes. */
const lookSql = `
select
  (select count(*)::integer from pg_stat_activity where datname = current_database()) as connections,
  (select sum(n_dead_tup)::integer from pg_stat_user_tables where schemaname = 'sluice') as dead,
  (select sum(pg_total_relation_size(relid))::float8 from pg_stat_user_tables
   where schemaname = 'sluice' and relname in
     ('tasks', 'workers', 'queues', 'admission', 'departures', 'bucket_levels', 'generation', 'serving')
  ) as bytes`;

async function doneRow(cluster: Cluster, { accepted, refused }: Submitted): Promise<Row> {
  let living = accepted;
  for (let looks = 0; living > 0 && looks < 60; looks += 1) {
    await delay(500);
    living = await cluster.countLiving();
  }
  return judged(
    {
      what: 'tasks submitted; refused; not ended half a minute after the last',
      measured: `${count(accepted)}; ${count(refused)}; ${count(living)}`,
      numbers: { accepted, refused, living },
    },
    '0 left',
    living === 0,
  );
}

/** From when it could begin to its claim, by the clock of Postgres. */
async function waitsRow(cluster: Cluster, began: Date, ended: Date): Promise<Row> {
  const thirdMs = (ended.getTime() - began.getTime()) / 3;
  const waits = async (from: number) => {
    const [row] = await cluster.database.query<{ p50: number; p99: number }>(waitsSql, [
      new Date(began.getTime() + from * thirdMs),
      new Date(began.getTime() + (from + 1) * thirdMs),
    ]);
    return row ?? { p50: Number.NaN, p99: Number.NaN };
  };
  const [early, late] = [await waits(0), await waits(2)];
  return noted({
    what: 'from submit to claim, p50; p99: last third against the first',
    measured: `${ms(late.p50)}; ${ms(late.p99)} against ${ms(early.p50)}; ${ms(early.p99)}`,
    numbers: { p50: late.p50 / early.p50, p99: late.p99 / early.p99 },
  });
}

const waitsSql = `
select
  percentile_cont(0.5) within group (order by wait) as p50,
  percentile_cont(0.99) within group (order by wait) as p99
from (
  select (extract(epoch from started_at - eligible_at) * 1000)::float8 as wait
  from sluice.task_history where eligible_at >= $1 and eligible_at < $2
) as waits`;
