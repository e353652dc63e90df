import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import type { TaskDraft } from '../../../src/protocol/tasks-api.js';
import { readFinalRows } from '../../recovery/final-rows.js';
import type { Lab } from '../../shared/lab.js';
import { count, judged, noted, seconds, type Row, type Scenario } from '../../shared/scenario.js';
import { Fleet } from '../../workers/fleet.js';
import { submitOnce, tally, type SubmitAnswer } from '../submit-answers.js';

const running = 180;
const submits = 30;
const workers = 6;

export const tableLock: Scenario = {
  name: 'table-lock',
  about: 'lock table sluice.tasks, sluice.workers for twice the lease, with 180 tasks running',
  run: async (lab) => [
    ...(await lock(lab, 'sluice.tasks')),
    ...(await lock(lab, 'sluice.workers')),
  ],
};

async function lock(lab: Lab, table: string): Promise<Row[]> {
  const heartbeatIntervalMs = lab.size(3_000, 1_000);
  const leaseMs = lab.size(10_000, 4_000);
  const times = { heartbeatIntervalMs, leaseMs };
  await using fleet = await Fleet.start(lab.postgresUrl, { servers: 2, ready: 'redis', ...times });
  const names = Array.from({ length: workers }, (_, n) => n);
  await fleet.startWorkers(
    names.map((n) => ({ name: `w${n}`, concurrency: running / workers, at: n % 2 })),
  );
  // They run when the lock comes, and when it goes.
  const draft: TaskDraft = {
    taskType: 'step',
    maxRetries: 0,
    parameters: { ms: 2.5 * leaseMs },
  };
  await fleet.submit(Array.from({ length: running }, () => draft));
  const began = () => fleet.notes().filter(({ what }) => what === 'began').length;
  await fleet.until('all tasks to run', () => began() >= running);
  const answers = await holdLock(fleet, table, 2 * leaseMs);
  await fleet.until('all tasks to end', async () => (await readEnds(fleet)).living === 0);
  const { completed, deadLetters } = await readEnds(fleet);
  const { mostRetries } = await readFinalRows(fleet.database);
  const stopped = fleet.notes().filter(({ what }) => what === 'stopped').length;
  const { slowestMs, refused, others } = tally(answers);
  return [
    judged(
      {
        what: `${table} locked: tasks that completed; dead letters`,
        measured: `${count(completed)}; ${count(deadLetters)}`,
        numbers: { completed, deadLetters },
      },
      `${running}; 0`,
      completed >= running && deadLetters === 0 && mostRetries === 0,
    ),
    judged(
      {
        what: 'submits meanwhile: 503 with Retry-After; accepted; any other answer',
        measured: `${count(refused)}; ${count(submits - refused - others)}; ${count(others)}`,
        numbers: { refused, others },
      },
      'no other answer',
      others === 0 && (table !== 'sluice.tasks' || refused === submits),
    ),
    judged(
      { what: 'the slowest answer', measured: seconds(slowestMs), numbers: { slowestMs } },
      'within 5 s',
      slowestMs < 5_000,
    ),
    noted({
      what: 'handlers that their worker stopped, since no heartbeat arrived for 90 % of the lease',
      measured: count(stopped),
      numbers: { stopped },
    }),
  ];
}

async function holdLock(fleet: Fleet, table: string, ms: number): Promise<SubmitAnswer[]> {
  const client = new Client({ connectionString: fleet.database.url });
  await client.connect();
  try {
    await client.query('begin');
    await client.query(`lock table ${table}`);
    const answers = Array.from({ length: submits }, async (_, n) => {
      await delay((n * ms) / 2 / submits);
      return submitOnce(fleet.url(n % 2), { task_type: 'step', parameters: { ms: 0 } });
    });
    await delay(ms);
    await client.query('commit');
    return await Promise.all(answers);
  } finally {
    await client.end();
  }
}

interface Ends {
  readonly completed: number;
  readonly deadLetters: number;
  readonly living: number;
}

async function readEnds(fleet: Fleet): Promise<Ends> {
  const [row] = await fleet.database.query<Ends>(`
    select
      (select count(*)::integer from sluice.task_history where status = 'completed') as completed,
      count(*) filter (where status = 'dead_letter')::integer as "deadLetters",
      count(*) filter (where status <> 'dead_letter')::integer as living
    from sluice.tasks`);
  if (row === undefined) throw new Error('an aggregate without groups answered no row');
  return row;
}
