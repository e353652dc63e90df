import { parseArgs } from 'node:util';
import { Client } from 'pg';
import { openEngine, type Engine } from '../src/engine/open-engine.js';
import type { ClaimedTask } from '../src/protocol/api.js';
import { startPostgres } from '../test/support/services/postgres-server.js';
import { makeEnded } from './ended-tasks.js';
import { median } from './median.js';

/**
 * What submit, claim and finish cost beside millions of ended tasks, against a database that has none:
 * `npm run bench:ended`. Two databases of one Postgres, rounds in turn, durability as in production. Ten
 * million need about 6 GB of disk and some minutes to make.
 */
const { values } = parseArgs({
  options: {
    ended: { type: 'string', default: '10000000' },
    days: { type: 'string', default: '6' },
    tasks: { type: 'string', default: '20000' },
    rounds: { type: 'string', default: '9' },
    json: { type: 'boolean', default: false },
  },
});
const ended = Number(values.ended);
const days = Number(values.days);
const tasks = Number(values.tasks);
const rounds = Number(values.rounds);
const atMost = 1.1;

const steps = ['submit', 'claim', 'finish'] as const;
/** Microseconds a task. */
type Costs = Readonly<Record<(typeof steps)[number], number>>;

interface Side {
  readonly engine: Engine;
  readonly measured: Costs[];
}

async function main(): Promise<void> {
  const postgres = await startPostgres({ durable: true });
  try {
    const empty = await openSide(postgres.url, 'sluice_empty', 0);
    const full = await openSide(postgres.url, 'sluice_full', ended);
    for (const side of [empty, full]) await round(side.engine, 2_000);
    for (let index = 0; index < rounds; index += 1) {
      // Whoever comes second finds a warmer machine: they change places.
      for (const side of index % 2 === 0 ? [empty, full] : [full, empty]) {
        side.measured.push(await round(side.engine, tasks));
      }
      say(`round ${index + 1} of ${rounds}: ${describe(empty.measured, full.measured, index)}`);
    }
    print(empty.measured, full.measured);
    await Promise.all([empty.engine.close(), full.engine.close()]);
  } finally {
    await postgres.stop();
  }
}

async function openSide(serverUrl: string, name: string, count: number): Promise<Side> {
  await withClient(serverUrl, (client) => client.query(`create database ${name}`));
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  const database = { kind: 'postgres', url: url.href } as const;
  // Nothing is let go while it is measured.
  const settings = { retainEndedDays: 365 };
  const engine = await openEngine({ database, settings });
  if (count > 0) {
    await withClient(url.href, async (client) => {
      const began = performance.now();
      await makeEnded(client, count, days);
      const seconds = ((performance.now() - began) / 1000).toFixed(0);
      const { rows } = await client.query<{ size: string }>(
        'select pg_size_pretty(pg_database_size(current_database())) as size',
      );
      const made = `${count.toLocaleString('en')} ended tasks over ${days} days`;
      say(`made ${made} in ${seconds} s: ${rows[0]?.size ?? ''}`);
    });
  }
  return { engine, measured: [] };
}

async function withClient(url: string, work: (client: Client) => Promise<unknown>): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

async function round(engine: Engine, count: number): Promise<Costs> {
  const drafts = Array.from({ length: 1_000 }, (_, index) => ({
    taskType: 'noop',
    queue: 'bench',
    parameters: { index, text: 'x'.repeat(100) },
  }));
  const submit = await cost(count, async () => {
    for (let from = 0; from < count; from += drafts.length) await engine.submitMany(drafts);
  });
  const { workerId } = await engine.register({ capacity: count });
  const claimed: ClaimedTask[] = [];
  const claim = await cost(count, async () => {
    while (claimed.length < count) {
      claimed.push(...(await engine.poll(workerId, { availableCapacity: 500 })).tasks);
    }
  });
  const finish = await cost(count, async () => {
    for (let from = 0; from < count; from += 500) {
      await engine.report(workerId, claimed.slice(from, from + 500).map(toReport));
    }
  });
  await engine.deregister(workerId);
  return { submit, claim, finish };
}

function toReport({ taskId, lease }: ClaimedTask) {
  return { taskId, lease, status: 'completed', result: { ok: true } } as const;
}

async function cost(count: number, work: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return ((performance.now() - began) * 1000) / count;
}

function describe(empty: readonly Costs[], full: readonly Costs[], index: number): string {
  return steps
    .map((step) => `${step} ${micros(empty[index]?.[step])} / ${micros(full[index]?.[step])} µs`)
    .join(', ');
}

function micros(value: number | undefined): string {
  return value?.toFixed(1) ?? '';
}

function summarize(empty: readonly Costs[], full: readonly Costs[]) {
  return steps.map((step) => {
    const ratios = full.map((costs, index) => costs[step] / (empty[index]?.[step] ?? Number.NaN));
    return {
      step,
      emptyMicros: median(empty.map((costs) => costs[step])),
      fullMicros: median(full.map((costs) => costs[step])),
      ratio: median(ratios),
      least: Math.min(...ratios),
      most: Math.max(...ratios),
    };
  });
}

function print(empty: readonly Costs[], full: readonly Costs[]): void {
  const summary = summarize(empty, full);
  if (values.json) {
    console.log(JSON.stringify({ ended, days, tasks, atMost, rounds: { empty, full }, summary }));
    return;
  }
  console.table(
    Object.fromEntries(
      summary.map(({ step, emptyMicros, fullMicros, ratio, least, most }) => [
        step,
        {
          'empty, µs': micros(emptyMicros),
          [`${ended.toLocaleString('en')} ended, µs`]: micros(fullMicros),
          ratio: ratio.toFixed(3),
          spread: `${least.toFixed(2)}–${most.toFixed(2)}`,
          'at most': atMost,
        },
      ]),
    ),
  );
}

/** On stderr, so that --json can be read by a program. */
function say(text: string): void {
  console.error(text);
}

await main();
