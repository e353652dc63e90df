import { firstIdAt } from '../domain/ids.js';
import { noAgeing, type Priority } from '../domain/priority.js';
import type { Operation, QueueChange } from './random-operations.contract.js';

const ownLimit = { unit: 'tokens', rate: 30, perSeconds: 1, burst: null };
const sharedLimit = { unit: 'tokens', rate: 6, perSeconds: 2, burst: 10 };

/** Histories that random seeds found, shortened. They are replayed before the random ones. */
export const knownHistories: readonly (readonly Operation[])[] = [
  // The second task is behind the first for a worker of every type, so no take finds that it is short of tokens.
  [
    restored({ limits: [ownLimit], paused: true, pausedForMs: 1 }),
    debtOf(1),
    offered(1, { taskType: 't', capabilities: ['gpu'] }),
    offered(2, { capabilities: ['gpu'], tokens: 1 }),
    offered(3, {}),
    taken({ taskTypes: null, capabilities: ['gpu'] }),
    taken({ taskTypes: ['s'] }),
    { kind: 'advance', ms: 1 },
    taken({ taskTypes: ['s'] }),
  ],
  // When the first task has its tokens, the second is short of them, and the third waits for the second.
  [
    restored({ limits: [ownLimit] }),
    debtOf(2),
    offered(1, { capabilities: ['gpu'] }),
    offered(2, { tokens: 1 }),
    offered(3, { taskType: 't' }),
    taken({ taskTypes: ['s', 't'], capabilities: ['gpu'] }),
    taken({ taskTypes: null }),
    { kind: 'advance', ms: 30 },
    taken({ taskTypes: null }),
  ],
  // The second task waits for tokens. Meanwhile age makes the first one as urgent, and it is older.
  [
    restored({ limits: [ownLimit], ageing: { ...noAgeing, lowToHighMs: 52 } }),
    debtOf(1),
    offered(1, { priority: 'low', ageMs: 31 }),
    offered(2, { tokens: 1 }),
    taken({ taskTypes: ['s'] }),
    { kind: 'advance', ms: 25 },
    taken({ taskTypes: ['s'] }),
  ],
  // The first task was taken while its queue had no limit: its refund gives no tokens to one that it has since.
  [
    restored({ name: 'b', limits: [{ use: 'x' }] }),
    offered(1, { tokens: 4 }),
    offered(2, { queue: 'b' }),
    offered(3, { queue: 'b', tokens: 2 }),
    taken({ taskTypes: null, count: 2 }),
    { kind: 'configure', queue: changed({ limits: [{ use: 'x' }] }) },
    debtOf(13),
    { kind: 'refund', taskIds: [firstIdAt(1)] },
    taken({ taskTypes: null }),
  ],
  // A parked wildcard lane gets a head that waits for a shared limit alone: the wait is that of the limit.
  [
    restored({ name: 'b', limits: [{ use: 'x' }, { ...ownLimit, burst: 20 }] }),
    offered(1, { queue: 'b', priority: 'medium', tokens: 19 }),
    offered(2, { queue: 'b', priority: 'medium', tokens: 20 }),
    taken({ taskTypes: null, count: 2 }),
    offered(3, { queue: 'b' }),
    taken({ taskTypes: null }),
  ],
];

function changed(change: Partial<QueueChange>): QueueChange {
  const open = { limits: [], maxConcurrency: null, maxReady: 10_000 as const, ageing: noAgeing };
  const running = { paused: false, pausedForMs: null, probes: null };
  return { name: 'a', versionsBack: 0, ...open, ...running, ...change };
}

function restored(change: Partial<QueueChange>): Operation {
  const limits = [{ name: 'x', versionsBack: 0, limit: sharedLimit }];
  const queues = [changed(change)];
  return { kind: 'restore', behind: [], running: [], limits, queues, levels: [] };
}

/** Of 1.12 tokens that a full bucket of `ownLimit` has, or of 10. */
function debtOf(tokens: number): Operation {
  const settled = { queue: 'a', reserved: { tokens: 0 }, usage: { requests: 0, tokens } };
  return { kind: 'finish', finished: [{ taskId: firstIdAt(9), isOfLast: false, ...settled }] };
}

function offered(
  nth: number,
  task: {
    readonly queue?: string;
    readonly taskType?: string;
    readonly capabilities?: readonly string[];
    readonly priority?: Priority;
    readonly ageMs?: number;
    readonly tokens?: number;
  },
): Operation {
  const { queue = 'a', taskType = 's', capabilities = [] } = task;
  const { priority = 'high', ageMs = 0, tokens = 0 } = task;
  const lane = { queue, taskType, capabilities };
  const offer = { taskId: firstIdAt(nth), lane, priority, ageMs, cost: { tokens } };
  return { kind: 'offer', offers: [offer] };
}

function taken(request: {
  readonly taskTypes: string[] | null;
  readonly capabilities?: string[];
  readonly count?: number;
}): Operation {
  const { taskTypes, capabilities = [], count = 1 } = request;
  return { kind: 'take', request: { taskTypes, capabilities, queues: null, count } };
}
