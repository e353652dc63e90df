import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import type { Engine, openEngine } from '../src/engine/open-engine.js';
import type { ClaimedTask } from '../src/protocol/workers-api.js';
import type { createMetrics } from '../src/server/index.js';
import { startPostgres } from '../test/support/services/postgres-server.js';
import { median } from './median.js';

const help = `npm run bench:engine -- [--tasks 20000] [--rounds 5] [--against FOLDER] [--json]

How fast the hot path is in-process on Postgres: submit in bulk, submit singly, claim and complete, with the metrics of
a server listening. Medians of several rounds with their spread; durability as in production. Uses DATABASE_URL if
given, else a throw-away server with stock settings.

--against FOLDER  another checkout with its node_modules, in turns with this one; prints the ratio of the rates`;

const { values } = parseArgs({
  options: {
    tasks: { type: 'string', default: '20000' },
    rounds: { type: 'string', default: '5' },
    against: { type: 'string' },
    /** Whose engine is measured. */
    source: { type: 'string', default: join(import.meta.dirname, '..') },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const tasks = Number(values.tasks);
const rounds = Number(values.rounds);

const measures = ['bulkSubmit', 'singleSubmit', 'claim', 'complete', 'process'] as const;
type Rates = Readonly<Record<(typeof measures)[number], number>>;

async function measure(): Promise<Rates[]> {
  const source = await importSource(values.source);
  const postgres = await startPostgres({ durable: true });
  try {
    const engine = await source.openEngine({ database: { kind: 'postgres', url: postgres.url } });
    source.createMetrics(engine, engine);
    const measured: Rates[] = [];
    try {
      await round(engine, 2_000);
      for (let index = 0; index < rounds; index++) {
        const rates = await round(engine, tasks);
        measured.push(rates);
        if (!values.json) console.error(`round ${String(index + 1)}: ${describe(rates)}`);
      }
    } finally {
      await engine.close();
    }
    return measured;
  } finally {
    await postgres.stop();
  }
}

interface Source {
  readonly openEngine: typeof openEngine;
  readonly createMetrics: typeof createMetrics;
}

async function importSource(folder: string): Promise<Source> {
  const load = (path: string) => import(pathToFileURL(join(folder, path)).href) as Promise<object>;
  const modules = [await load('src/engine/open-engine.ts'), await load('src/server/index.ts')];
  return Object.assign({}, ...modules) as Source;
}

/** In turns, each round in a process of its own, so that both sides meet the same noise. */
function compare(other: string): void {
  const ratios: Rates[] = [];
  for (let index = 0; index < rounds; index++) {
    const ours = measureApart(values.source);
    const theirs = measureApart(resolve(other));
    ratios.push(
      Object.fromEntries(measures.map((name) => [name, ours[name] / theirs[name]])) as Rates,
    );
    if (!values.json) console.error(`round ${String(index + 1)}: ${describeRatios(ratios.at(-1))}`);
  }
  if (values.json) {
    console.log(JSON.stringify({ tasks, ratios }));
    return;
  }
  const row = (name: (typeof measures)[number]) => {
    const all = ratios.map((ratio) => ratio[name]);
    const [least, most] = [Math.min(...all), Math.max(...all)];
    return { ratio: median(all).toFixed(3), least: least.toFixed(3), most: most.toFixed(3) };
  };
  console.table(Object.fromEntries(measures.map((name) => [name, row(name)])));
}

function measureApart(source: string): Rates {
  const { status, stdout } = spawnSync(
    process.execPath,
    [
      ...process.execArgv,
      ...[import.meta.filename, '--json', '--rounds', '1'],
      ...['--tasks', values.tasks, '--source', source],
    ],
    { stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8' },
  );
  const [rates] = status === 0 ? (JSON.parse(stdout) as { rounds: Rates[] }).rounds : [];
  if (rates === undefined) throw new Error(`The benchmark of ${source} failed`);
  return rates;
}

function describeRatios(ratios: Rates | undefined): string {
  return measures.map((name) => `${name} ${ratios?.[name].toFixed(3) ?? ''}`).join(', ');
}

async function round(engine: Engine, count: number): Promise<Rates> {
  const bulkSubmit = await rate(count, () => submitInBulk(engine, count, 1_000));
  const { workerId } = await engine.register({ capacity: count });
  const claimed: ClaimedTask[] = [];
  const claim = await rate(count, async () => {
    while (claimed.length < count) {
      const answer = await engine.poll(workerId, { availableCapacity: 500 });
      claimed.push(...answer.tasks);
    }
  });
  const complete = await rate(count, async () => {
    for (let from = 0; from < count; from += 500) {
      await engine.report(workerId, claimed.slice(from, from + 500).map(toReport));
    }
  });
  const single = Math.min(count, 10_000);
  const singleSubmit = await rate(single, () => submitSingly(engine, single, 50));
  await submitInBulk(engine, count, 1_000);
  const process = await rate(count + single, () => processAll(engine, count + single));
  await engine.deregister(workerId);
  return { bulkSubmit, singleSubmit, claim, complete, process };
}

/** Claim and completion overlap, as in a worker. */
async function processAll(engine: Engine, count: number): Promise<void> {
  const { workerId } = await engine.register({ capacity: count });
  let done = 0;
  const reports: Promise<unknown>[] = [];
  while (done < count) {
    const { tasks: claimed } = await engine.poll(workerId, { availableCapacity: 500 });
    done += claimed.length;
    reports.push(engine.report(workerId, claimed.map(toReport)));
  }
  await Promise.all(reports);
  await engine.deregister(workerId);
}

async function submitInBulk(engine: Engine, count: number, batch: number): Promise<void> {
  const drafts = Array.from({ length: batch }, (_, index) => draft(index));
  for (let from = 0; from < count; from += batch) await engine.submitMany(drafts);
}

async function submitSingly(engine: Engine, count: number, concurrency: number): Promise<void> {
  let next = 0;
  const submitter = async () => {
    while (next < count) await engine.submit(draft(next++));
  };
  await Promise.all(Array.from({ length: concurrency }, submitter));
}

function draft(index: number) {
  return { taskType: 'noop', queue: 'bench', parameters: { index, text: 'x'.repeat(100) } };
}

function toReport({ taskId, lease }: ClaimedTask) {
  return { taskId, lease, status: 'completed', result: { ok: true } } as const;
}

async function rate(count: number, work: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return (count / (performance.now() - began)) * 1000;
}

function describe(rates: Rates): string {
  return measures
    .map((name) => `${name} ${Math.round(rates[name]).toLocaleString('en')}/s`)
    .join(', ');
}

function print(measured: readonly Rates[]): void {
  const summary = Object.fromEntries(
    measures.map((name) => {
      const sorted = measured.map((rates) => rates[name]).sort((a, b) => a - b);
      const median = sorted[sorted.length >> 1] ?? 0;
      return [name, { median, least: sorted[0] ?? 0, most: sorted.at(-1) ?? 0 }];
    }),
  );
  if (values.json) {
    console.log(JSON.stringify({ tasks, rounds: measured, summary }));
    return;
  }
  console.table(
    Object.fromEntries(
      Object.entries(summary).map(([name, { median, least, most }]) => [
        name,
        { 'per second': Math.round(median), least: Math.round(least), most: Math.round(most) },
      ]),
    ),
  );
}

if (values.help) console.log(help);
else if (values.against !== undefined) compare(values.against);
else print(await measure());
