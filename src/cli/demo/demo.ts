import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { NodeHttpApi } from '../../client/node-http-api.js';
import { priorityOf, type Priority } from '../../domain/priority.js';
import { hasEnded } from '../../domain/task-state.js';
import type { SluiceApi } from '../../protocol/api.js';
import type { ListedTask, TaskDraft } from '../../protocol/tasks-api.js';
import { CliError } from '../failure.js';
import { paint, printLine } from '../output.js';
import { everyPage } from '../pages.js';
import { Children } from './children.js';
import { chat, modelUrlVariable } from './demo-tasks.js';
import { liveView } from './live-view.js';
import { startModelServer, type Model } from './model-server.js';
import { describeTally, printSummary, tally } from './summary.js';
import { followTasks, TaskCounts } from './task-counts.js';

export interface DemoOptions {
  readonly tasks: number;
  readonly keep: boolean;
  /** Fires at Ctrl-C. */
  readonly signal: AbortSignal;
}

const models: readonly Model[] = [
  { name: 'gpt-4o', share: 0.25, minMs: 200, maxMs: 600 },
  { name: 'gpt-4o-mini', share: 0.3, minMs: 80, maxMs: 250 },
  { name: 'claude-sonnet', share: 0.2, minMs: 250, maxMs: 700 },
  { name: 'llama-70b', share: 0.15, minMs: 150, maxMs: 500 },
  { name: 'embeddings', share: 0.1, minMs: 30, maxMs: 100 },
];
const prioritiesByShare: readonly [Priority, number][] = [
  [priorityOf(0), 0.2],
  [priorityOf(1), 0.7],
  [priorityOf(2), 1],
];
const workers = 2;
const slotsEach = 32;
const batchSize = 250;

/** The main job on embedded defaults, with everything that it needs, and nothing left behind. */
export async function runDemo({ tasks, keep, signal }: DemoOptions): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-demo-'));
  const children = new Children();
  const model = await startModelServer({ models, failureShare: 0.01 });
  try {
    await whileRunning([signal, children.failed], async () => {
      const url = await startAll(children, folder, model.url);
      await runTasks(url, tasks);
      if (keep) await stay(url);
    });
  } finally {
    await children.stop();
    await model.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function startAll(children: Children, folder: string, modelUrl: string): Promise<string> {
  printLine(
    `Starting a server on embedded Postgres, a stand-in model server and ` +
      `${workers} worker processes …`,
  );
  const ready = await children.start({
    args: ['serve', '--port', '0', '--data', join(folder, 'data'), '--log-level', 'warn'],
    cwd: folder,
  });
  const url = /http:\S+/.exec(ready)?.[0];
  if (url === undefined) throw new CliError(`The server said "${ready}" instead of its address.`);
  const worker = ['worker', '--module', taskModule(), '--concurrency', String(slotsEach)];
  await Promise.all(
    Array.from({ length: workers }, (_, index) =>
      children.start({
        args: [...worker, '--url', url, '--name', `demo-${index + 1}`],
        cwd: folder,
        env: { [modelUrlVariable]: modelUrl },
      }),
    ),
  );
  return url;
}

/** Beside this file, compiled or not as this one is. */
function taskModule(): string {
  const extension = extname(fileURLToPath(import.meta.url));
  return fileURLToPath(new URL(`demo-tasks${extension}`, import.meta.url));
}

async function runTasks(url: string, count: number): Promise<void> {
  const api = new NodeHttpApi(url);
  const drafts = Array.from({ length: count }, (_, index) => draft(index));
  const totals = new Map(models.map(({ name }) => [name, 0]));
  for (const { queue = '' } of drafts) totals.set(queue, (totals.get(queue) ?? 0) + 1);
  const slots = workers * slotsEach;
  printLine(`${count} model calls over ${models.length} queues at ${url}, ${slots} at once`);
  printLine(`Watch them in the dashboard: ${paint('bold', `${url}/`)}`);
  printLine();

  const { submitted, found } = await runWatched(url, api, drafts, totals);
  printLine();
  printSummary(found, [...totals.keys()]);
  printLine();
  const result = tally(submitted, found);
  printLine(paint('bold', describeTally(result)));
  if (result.completed < result.submitted) {
    throw new CliError('Not all of them completed.', { next: 'Run it with --keep to look why.' });
  }
}

async function runWatched(
  url: string,
  api: SluiceApi,
  drafts: readonly TaskDraft[],
  totals: ReadonlyMap<string, number>,
): Promise<{ submitted: ReadonlySet<string>; found: readonly ListedTask[] }> {
  const following = new AbortController();
  const counts = new TaskCounts();
  await followTasks(url, (event) => counts.note(event), following.signal);
  const view = liveView(counts, totals);
  try {
    const submitted = await submitAll(api, drafts);
    return { submitted, found: await allEnded(api, counts, submitted) };
  } finally {
    view.stop();
    following.abort();
  }
}

function draft(index: number): TaskDraft {
  return {
    taskType: chat.type,
    queue: pick(models.map(({ name, share }) => [name, share])),
    priority: pickPriority(),
    parameters: { prompt: `question ${index + 1}` },
  };
}

function pick(shares: readonly (readonly [string, number])[]): string {
  let left = Math.random();
  for (const [name, share] of shares) {
    left -= share;
    if (left < 0) return name;
  }
  return shares[0]?.[0] ?? '';
}

function pickPriority(): Priority {
  const random = Math.random();
  return prioritiesByShare.find(([, upTo]) => random < upTo)?.[0] ?? 'medium';
}

async function submitAll(
  api: SluiceApi,
  drafts: readonly TaskDraft[],
): Promise<ReadonlySet<string>> {
  const submitted = new Set<string>();
  for (let from = 0; from < drafts.length; from += batchSize) {
    for (const outcome of await api.submitMany(drafts.slice(from, from + batchSize))) {
      if (outcome.kind === 'refused') throw new CliError(`A task was refused: ${outcome.detail}`);
      submitted.add(outcome.receipt.taskId);
    }
  }
  return submitted;
}

/** The events say when to look; what the server then lists is what counts. */
async function allEnded(
  api: SluiceApi,
  counts: TaskCounts,
  submitted: ReadonlySet<string>,
): Promise<readonly ListedTask[]> {
  for (let looks = 0; ; looks += 1) {
    const { completed, givenUp } = counts.of(null);
    if (completed + givenUp >= submitted.size || looks % 50 === 49) {
      const found = await everyPage((page) => api.listTasks({}, { ...page, limit: 1_000 }));
      if (found.every(({ status }) => hasEnded(status))) return found;
    }
    await delay(100);
  }
}

async function stay(url: string): Promise<void> {
  printLine();
  printLine(`The server stays up at ${paint('bold', url)} until Ctrl-C. For example:`);
  printLine(`  open the dashboard: ${url}/`);
  printLine(`  sluice queues --url ${url}`);
  printLine(`  sluice submit chat --queue gpt-4o --params '{"prompt":"hi"}' --wait --url ${url}`);
  await new Promise(() => undefined);
}

/** Rejects with the reason of whichever signal fires first, in the middle of anything. */
async function whileRunning<Answer>(
  signals: readonly AbortSignal[],
  work: () => Promise<Answer>,
): Promise<Answer> {
  const interrupted = new Promise<never>((_, reject) => {
    for (const signal of signals) {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    }
  });
  return Promise.race([work(), interrupted]);
}
