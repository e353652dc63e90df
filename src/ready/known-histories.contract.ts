import { firstIdAt } from '../domain/ids.js';
import { noAgeing } from '../domain/priority.js';
import type { Operation } from './random-operations.contract.js';

/** 0.12 tokens are left in the bucket after this debt; a task without tokens may go, one of 1 token waits. */
const small = debtOf(1);
/** Less than nothing is left: every task waits. */
const large = debtOf(2);

/** Histories that random seeds found, shortened. They are replayed before the random ones. */
export const knownHistories: readonly (readonly Operation[])[] = [
  // The second task is behind the first for a worker of every type, so no take finds that it is short of tokens.
  [
    restored({ paused: true, pausedForMs: 1 }),
    small,
    offered(1, { taskType: 't', capabilities: ['gpu'], tokens: 0 }),
    offered(2, { taskType: 's', capabilities: ['gpu'], tokens: 1 }),
    offered(3, { taskType: 's', capabilities: [], tokens: 0 }),
    taken({ taskTypes: null, capabilities: ['gpu'] }),
    taken({ taskTypes: ['s'], capabilities: [] }),
    { kind: 'advance', ms: 1 },
    taken({ taskTypes: ['s'], capabilities: [] }),
  ],
  // When the first task has its tokens, the second is short of them, and the third waits for the second.
  [
    restored({ paused: false, pausedForMs: null }),
    large,
    offered(1, { taskType: 's', capabilities: ['gpu'], tokens: 0 }),
    offered(2, { taskType: 's', capabilities: [], tokens: 1 }),
    offered(3, { taskType: 't', capabilities: [], tokens: 0 }),
    taken({ taskTypes: ['s', 't'], capabilities: ['gpu'] }),
    taken({ taskTypes: null, capabilities: [] }),
    { kind: 'advance', ms: 30 },
    taken({ taskTypes: null, capabilities: [] }),
  ],
];

function restored(pause: {
  readonly paused: boolean;
  readonly pausedForMs: number | null;
}): Operation {
  const limits = [{ unit: 'tokens', rate: 30, perSeconds: 1, burst: null }];
  const open = { maxConcurrency: null, maxReady: 10_000 as const, probes: null, ageing: noAgeing };
  const queues = [{ name: 'a', versionsBack: 0, limits, ...open, ...pause }];
  return { kind: 'restore', behind: [], running: [], limits: [], queues, levels: [] };
}

function debtOf(tokens: number): Operation {
  const taskId = firstIdAt(9);
  const settled = { queue: 'a', reserved: { tokens: 0 }, usage: { requests: 0, tokens } };
  return { kind: 'finish', finished: [{ taskId, isByGrant: false, ...settled }] };
}

function offered(
  nth: number,
  task: {
    readonly taskType: string;
    readonly capabilities: readonly string[];
    readonly tokens: number;
  },
): Operation {
  const { tokens, ...rest } = task;
  const lane = { queue: 'a', ...rest };
  const offer = { taskId: firstIdAt(nth), lane, priority: 'high', ageMs: 0, cost: { tokens } };
  return { kind: 'offer', offers: [offer] } as Operation;
}

function taken(filter: {
  readonly taskTypes: string[] | null;
  readonly capabilities: string[];
}): Operation {
  return { kind: 'take', request: { ...filter, queues: null, count: 1 } };
}
