import { setTimeout as delay } from 'node:timers/promises';
import type { TaskDraft } from '../../../src/protocol/tasks-api.js';
import { bucketShape, tokensAt } from '../../../src/domain/token-bucket.js';
import { mostInWindow } from '../../../test/limits/sliding-window.js';
import { Cluster, requests } from '../../../lab/limits/cluster.js';
import type { Lab } from '../../../lab/shared/lab.js';
import { seededRandom } from '../../../lab/shared/measure.js';
import {
  count,
  judged,
  noted,
  percent,
  seconds,
  type Row,
  type Scenario,
} from '../../../lab/shared/scenario.js';

/** One call: what was reserved for it at the claim, and what it had used when it ended. */
export interface TokenCall {
  readonly estimate: number;
  readonly used: number;
  readonly claimedAt: number;
  /** Null: it still ran when the measurement was over. */
  readonly settledAt: number | null;
}

export interface TokenWindow {
  readonly used: number;
  readonly bound: number;
}

const tokensPerMinute = 30_000;
const queue = 'model';

export const tokens: Scenario = {
  name: 'tokens',
  about:
    '600 requests and 30,000 tokens a minute, calls of 50 to 400 tokens that were estimated wrong by -50 to +100 %',
  run: async (lab) => {
    const runMs = lab.size(90_000, 16_000);
    const [inMemory, inRedis] = await Promise.all([
      measure(lab, 'memory', runMs),
      measure(lab, 'redis', runMs),
      lab.progress.wait('memory and Redis', runMs),
    ]);
    return [...inMemory, ...inRedis];
  },
};

async function measure(lab: Lab, ready: 'memory' | 'redis', runMs: number): Promise<Row[]> {
  const windowSeconds = lab.size(60, 12);
  const rate = (tokensPerMinute * windowSeconds) / 60;
  const limit = { unit: 'tokens', rate, perSeconds: windowSeconds, burst: null };
  await using cluster = await Cluster.start(lab.postgresUrl, { servers: 1, ready });
  const requestLimit = requests((600 * windowSeconds) / 60, windowSeconds);
  await cluster.put(queue, { limits: [requestLimit, limit] });
  const { drafts, costs } = drawTasks(lab.size(400, 120));
  const taskIds = await cluster.submit(drafts);
  await cluster.startWorkers({ workers: 2, concurrency: 50 });
  await delay(runMs);
  await cluster.stopWorkers();

  const costOf = new Map(taskIds.map((taskId, index) => [taskId, costs[index]]));
  const calls = await readCalls(cluster, costOf);
  const capacity = tokensAt(bucketShape(limit), bucketShape(limit).capacity);
  return [windowRow(ready, windowSeconds, calls, rate, capacity), shareRow(ready, calls)];
}

interface Costs {
  readonly estimate: number;
  readonly used: number;
}

function drawTasks(length: number): { drafts: TaskDraft[]; costs: Costs[] } {
  const random = seededRandom(1);
  const costs = Array.from({ length }, () => {
    const used = Math.round(50 + random() * 350);
    return { used, estimate: Math.max(1, Math.round(used * (0.5 + random() * 1.5))) };
  });
  const drafts = costs.map(({ estimate, used }) => ({
    taskType: 'call',
    queue,
    cost: { tokens: estimate },
    parameters: { hold_ms: Math.round(200 + random() * 1_800), tokens: used },
  }));
  return { drafts, costs };
}

interface CallRow {
  readonly id: string;
  readonly claimed_at: number;
  readonly settled_at: number | null;
  readonly reported: number | null;
}

async function readCalls(
  cluster: Cluster,
  costOf: ReadonlyMap<string, Costs | undefined>,
): Promise<TokenCall[]> {
  const rows = await cluster.database.query<CallRow>(`
    select id, (extract(epoch from started_at) * 1000)::float8 as claimed_at,
      (extract(epoch from ended_at) * 1000)::float8 as settled_at,
      (usage->>'tokens')::integer as reported
    from sluice.task_history where status = 'completed'
    union all
    select id, (extract(epoch from started_at) * 1000)::float8, null, null
    from sluice.tasks where started_at is not null
    order by claimed_at`);
  return rows.map(({ id, claimed_at, settled_at, reported }) => {
    const costs = costOf.get(id);
    if (costs === undefined) throw new Error(`${id} is not of this run`);
    if (settled_at !== null && reported !== costs.used) {
      throw new Error(`${id} used ${costs.used} tokens, and the history says ${String(reported)}`);
    }
    return { ...costs, claimedAt: claimed_at, settledAt: settled_at };
  });
}

/**
 * The window that comes nearest to its bound, or is furthest beyond it. Calls count for what they
 * really used, when they are claimed. The bound is the rate, and
 * - what was claimed in the window and had not been settled at its last claim: what it took more
 *   than its estimate could not be known yet;
 * - what was claimed before the window and was settled in it: what it took less came back;
 * - one cost above the capacity, which is granted from a full bucket.
 */
export function nearestWindow(
  calls: readonly TokenCall[],
  windowMs: number,
  rate: number,
  capacity: number,
): TokenWindow {
  const windows = calls.map(({ claimedAt: from }) => {
    const inside = calls.filter((one) => one.claimedAt >= from && one.claimedAt < from + windowMs);
    const last = inside.at(-1)?.claimedAt ?? from;
    const unsettled = inside.filter(({ settledAt }) => settledAt === null || settledAt >= last);
    const earlier = calls.filter(
      ({ claimedAt, settledAt }) => claimedAt < from && (settledAt === null || settledAt >= from),
    );
    const greatest = Math.max(...inside.map(({ estimate }) => estimate));
    return {
      used: sum(inside, ({ used }) => used),
      bound:
        rate +
        sum(unsettled, ({ used, estimate }) => Math.max(0, used - estimate)) +
        sum(earlier, ({ used, estimate }) => Math.max(0, estimate - used)) +
        Math.max(0, greatest - capacity),
    };
  });
  return windows.reduce(
    (nearest, window) =>
      window.bound - window.used < nearest.bound - nearest.used ? window : nearest,
    { used: 0, bound: rate },
  );
}

function sum<Item>(items: readonly Item[], pick: (item: Item) => number): number {
  return items.reduce((total, item) => total + pick(item), 0);
}

function windowRow(
  ready: string,
  windowSeconds: number,
  calls: readonly TokenCall[],
  rate: number,
  capacity: number,
): Row {
  const { used, bound } = nearestWindow(calls, windowSeconds * 1000, rate, capacity);
  const events = calls.map((call) => ({ atMs: call.claimedAt, amount: call.used }));
  const most = mostInWindow(events, windowSeconds * 1000);
  return judged(
    {
      what: `${ready}: tokens really used in any ${windowSeconds} s; the window nearest to its bound`,
      measured: `${count(used)} of ${count(bound)}; the most in any window ${count(most)}`,
      numbers: { used, bound, most, rate, calls: calls.length },
    },
    `≤ ${count(rate)} + what was not known yet`,
    used <= bound,
  );
}

/** Without the last call, which the next token after the time would have been spent on. */
function shareRow(ready: string, calls: readonly TokenCall[]): Row {
  const durationMs = (calls.at(-1)?.claimedAt ?? 0) - (calls[0]?.claimedAt ?? 0);
  const used = sum(calls.slice(0, -1), (call) => call.used);
  const share = used / ((durationMs * tokensPerMinute) / 60_000);
  return noted({
    what: `${ready}: share of the tokens used while there was work`,
    measured: `${percent(share)} over ${seconds(durationMs)}`,
    numbers: { share, durationMs },
  });
}
