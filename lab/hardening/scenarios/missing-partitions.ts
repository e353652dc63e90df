import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { firstIdAt } from '../../../src/domain/ids.js';
import { Caller } from '../../recovery/caller.js';
import { countCompletedOf, readFinalRows } from '../../recovery/final-rows.js';
import { Child } from '../../shared/child.js';
import type { LabDatabase } from '../../shared/database.js';
import type { Lab } from '../../shared/lab.js';
import {
  count,
  judged,
  ms,
  noted,
  seconds,
  type Row,
  type Scenario,
} from '../../shared/scenario.js';
import { Fleet } from '../../workers/fleet.js';

const submitOnly = join(import.meta.dirname, '../submit-only.mjs');
const everyMs = 500;
const stepMs = 20;
const longAgo = Date.UTC(2020, 0, 1, 12);
const longAgoTable = 'task_inputs_20200101';

export const missingPartitions: Scenario = {
  name: 'missing-partitions',
  about:
    'every 500 ms the partitions of inputs are dropped under a process that only submits, then those of history are detached under server and workers; then a day of prompts of which one task is left',
  run: async (lab) => [
    ...(await withoutInputs(lab)),
    ...(await withoutHistory(lab)),
    ...(await oneOfADay(lab)),
  ],
};

interface Answers {
  readonly accepted: number;
  readonly slowestMs: number;
  readonly refused: Readonly<Record<string, number>>;
}

async function withoutInputs(lab: Lab): Promise<Row[]> {
  await using fleet = await Fleet.start(lab.postgresUrl);
  const child = new Child({ args: [submitOnly, fleet.database.url] });
  try {
    await child.ready;
    const rounds = await repeatedly(lab.size(20_000, 3_000), () =>
      forEachPartition(fleet.database, 'task_inputs', (name) => `drop table ${name}`),
    );
    const { accepted, slowestMs, refused } = (await child.ask('answers')) as Answers;
    const refusals = Object.values(refused).reduce((sum, n) => sum + n, 0);
    return [
      judged(
        {
          what: `inputs dropped ${rounds} times: submits accepted; refused (${Object.keys(refused).join(', ')})`,
          measured: `${count(accepted)}; ${count(refusals)}`,
          numbers: { rounds, accepted, refusals },
        },
        'all; 0',
        accepted > 0 && refusals === 0,
      ),
      noted({ what: 'slowest submit', measured: ms(slowestMs), numbers: { slowestMs } }),
    ];
  } finally {
    await child.kill();
  }
}

async function withoutHistory(lab: Lab): Promise<Row[]> {
  await using fleet = await Fleet.start(lab.postgresUrl);
  await fleet.startWorkers(['a', 'b'].map((name) => ({ name, concurrency: 50 })));
  const caller = new Caller(fleet.url(0), stepMs);
  const rounds = await repeatedly(lab.size(20_000, 3_000), () =>
    forEachPartition(
      fleet.database,
      'task_history',
      (name) => `alter table sluice.task_history detach partition ${name}`,
    ),
  );
  await caller.stop();
  await fleet.untilEmpty();
  const taskIds = [...caller.acknowledged.keys()];
  const lost = taskIds.length - (await countCompletedOf(fleet.database, taskIds));
  const { mostPastAttempts } = await readFinalRows(fleet.database);
  const others = [...caller.others.values()].reduce((sum, n) => sum + n, 0);
  return [
    judged(
      {
        what: `history detached ${rounds} times: acknowledged; of these not completed; run twice`,
        measured: `${count(taskIds.length)}; ${count(lost)}; ${count(mostPastAttempts)}`,
        numbers: { rounds, acknowledged: taskIds.length, lost, mostPastAttempts },
      },
      'all; 0; 0',
      taskIds.length > 0 && lost === 0 && mostPastAttempts === 0,
    ),
    judged(
      { what: 'other answers than 2xx and 503', measured: count(others), numbers: { others } },
      '0',
      others === 0,
    ),
  ];
}

/** A task that is due in a month, and as many of its day that were purged. */
async function oneOfADay(lab: Lab): Promise<Row[]> {
  const prompts = lab.size(200_000, 5_000);
  await using fleet = await Fleet.start(lab.postgresUrl);
  const { database } = fleet;
  const parameters = { text: 'the one that is kept' };
  const draft = { taskType: 'noop', parameters, delaySeconds: 30 * 86_400 };
  const { taskId } = await fleet.api().submit(draft);
  const old = firstIdAt(longAgo);
  await database.query(`select sluice.ensure_inputs_of('2020-01-01')`);
  await database.query(
    `insert into sluice.task_inputs
     select $2::uuid, parameters from sluice.task_inputs where task_id = $1`,
    [taskId, old],
  );
  await database.query('update sluice.tasks set id = $2 where id = $1', [taskId, old]);
  await database.query(
    `insert into sluice.task_inputs
     select (left($1::text, 23) || '-' || lpad(to_hex(n), 12, '0'))::uuid,
       to_json((select string_agg(md5(random()::text || n || m), '') from generate_series(1, 64) m))
     from generate_series(1, $2::int) n`,
    [firstIdAt(longAgo + 1), prompts],
  );
  const before = await bytesOf(database);
  const caller = new Caller(fleet.url(0), 0);
  // Its first round of retention comes with its first tick.
  const beganMs = performance.now();
  await fleet.killServer(0);
  await fleet.until('the day to be small', async () => (await bytesOf(database)) < 100_000);
  const tookMs = performance.now() - beganMs;
  await caller.stop();
  const after = await bytesOf(database);
  const view = await fleet.api().getTask(old);
  const isWhole = JSON.stringify(view.parameters) === JSON.stringify(parameters);
  return [
    judged(
      {
        what: `${count(prompts)} prompts of a day, one task left: kB before; after`,
        measured: `${count(before / 1000)}; ${count(after / 1000)}`,
        numbers: { before, after, prompts },
      },
      'less than 100 kB, its parameters whole',
      after < 100_000 && isWhole,
    ),
    noted({
      what: 'from the start of a server until then',
      measured: seconds(tookMs),
      numbers: { tookMs },
    }),
  ];
}

async function repeatedly(durationMs: number, work: () => Promise<void>): Promise<number> {
  const endMs = performance.now() + durationMs;
  let rounds = 0;
  for (; performance.now() < endMs; rounds += 1) {
    await work();
    await delay(everyMs);
  }
  return rounds;
}

/** Those that are there now; another process may make or drop one meanwhile. */
async function forEachPartition(
  database: LabDatabase,
  parent: string,
  statementFor: (name: string) => string,
): Promise<void> {
  const rows = await database.query<{ name: string }>(
    `select inhrelid::regclass::text as name from pg_inherits
     where inhparent = ('sluice.' || $1)::regclass order by 1`,
    [parent],
  );
  for (const { name } of rows) await database.query(statementFor(name));
}

async function bytesOf(database: LabDatabase): Promise<number> {
  const [row] = await database.query<{ bytes: string }>(
    `select pg_total_relation_size('sluice.${longAgoTable}') as bytes`,
  );
  return Number(row?.bytes);
}
