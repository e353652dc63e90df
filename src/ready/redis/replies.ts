import type { TaskId } from '../../domain/ids.js';
import { laneOf, type Lane } from '../../domain/lane.js';
import { priorityOf, type Priority } from '../../domain/priority.js';
import type { RateLimit } from '../../domain/queue-settings.js';
import type {
  BucketLevel,
  LiveBucket,
  LiveQueue,
  OfferOutcome,
  Out,
  TakeAnswer,
  Taken,
  Wake,
  Window,
  WindowLook,
} from '../ready-queue.js';
import type { Reply } from './script-runner.js';

/** What scripts answer, as the port says it. */

export function listOf(reply: Reply | undefined): readonly Reply[] {
  if (Array.isArray(reply)) return reply as readonly Reply[];
  throw new TypeError(`a script answered ${JSON.stringify(reply)} instead of a list`);
}

export function textsOf(reply: Reply | undefined): string[] {
  return listOf(reply).map(String);
}

function numbersOf(reply: Reply | undefined): number[] {
  return listOf(reply).map(Number);
}

/** Flat lists are read in steps: so many values make one. */
function inSteps<T>(values: readonly string[], step: number, read: (at: Values) => T): T[] {
  const found: T[] = [];
  for (let from = 0; from < values.length; from += step) {
    found.push(read((offset) => values[from + offset] ?? ''));
  }
  return found;
}

type Values = (offset: number) => string;

/** What is left of a take whose script had done enough. */
export interface RestOfTake {
  /** How many sources or named queues it looked at; null: at all. */
  readonly entered: number | null;
  /** Classes of sources, or named queues: nothing of them can be taken for so long. */
  readonly leftOut: ReadonlySet<string>;
  readonly waitMs: number | null;
}

/** Null: nothing is left. */
export function restOfTake(reply: readonly Reply[]): RestOfTake | null {
  const [entered, waitMs, ...leftOut] = listOf(reply.at(-1));
  if (entered === -1 && leftOut.length === 0) return null;
  return {
    entered: entered === -1 ? null : Number(entered),
    leftOut: new Set(leftOut.map(String)),
    waitMs: orNull(waitMs),
  };
}

/** Of an answer `wait` or `taken`. */
export function takeAnswer(reply: readonly Reply[]): TakeAnswer {
  if (reply[0] === 'wait') return { kind: 'wait', waitMs: orNull(reply[1]) };
  const [, generation, grant, next, waitMs, granted] = reply;
  return {
    kind: 'taken',
    generation: Number(generation),
    entries: takenOf(String(grant), textsOf(granted)),
    next: next === '' ? null : laneOf(String(next)),
    waitMs: orNull(waitMs),
  };
}

function takenOf(grant: string, granted: readonly string[]): Taken[] {
  const lanes = new Map<string, Lane>();
  return inSteps(granted, 4, (at) => {
    const key = at(1);
    let lane = lanes.get(key);
    if (lane === undefined) {
      lane = laneOf(key);
      lanes.set(key, lane);
    }
    return {
      taskId: at(0) as TaskId,
      grant,
      lane,
      priority: priorityOf(Number(at(2))),
      effectivePriority: priorityOf(Number(at(3))),
    };
  });
}

/** Those that were not accepted are told, each by its number. */
export function outcomesOf(reply: Reply | undefined, count: number): OfferOutcome[] {
  const outcomes = new Array<OfferOutcome>(count).fill('accepted');
  inSteps(textsOf(reply), 2, (at) => {
    outcomes[Number(at(0)) - 1] = at(1) as OfferOutcome;
  });
  return outcomes;
}

function orNull(reply: Reply | undefined): number | null {
  return reply === '' ? null : Number(reply);
}

export function wakesOf(reply: Reply): Wake[] {
  return listOf(reply).map((wake) => {
    const [count, ...keys] = listOf(wake);
    return { count: Number(count), lanes: keys.map((key) => laneOf(String(key))) };
  });
}

export function windowsOf(reply: Reply | undefined): Window[] {
  return textsOf(reply).map((field) => ({
    lane: laneOf(field.slice(1)),
    priority: priorityOf(Number(field[0])),
  }));
}

/** While it is closed nothing is fed into it. */
export const closedLook: WindowLook = { room: 0, left: null };

export function looksOf(reply: Reply): WindowLook[] {
  return inSteps(textsOf(reply), 4, (at) => {
    const from = { eligibleAtMs: numberOf(at(1)), seq: Number(at(2)) };
    return { room: Number(at(0)), left: at(3) === '' ? null : { from, round: Number(at(3)) } };
  });
}

function numberOf(text: string): number {
  return text === '-inf' ? Number.NEGATIVE_INFINITY : Number(text);
}

export function outOf(reply: Reply | undefined): Out[] {
  return inSteps(textsOf(reply), 5, (at) => ({
    taskId: at(0) as TaskId,
    grant: at(1),
    queue: at(2),
    confirmed: at(3) === '1',
    forMs: Number(at(4)),
  }));
}

export function levelsOf(reply: Reply | undefined): BucketLevel[] {
  return inSteps(textsOf(reply), 2, (at) => ({ bucket: at(0), tokens: Number(at(1)) }));
}

export const emptyLive: LiveQueue = {
  depth: { high: 0, medium: 0, low: 0 },
  effectiveDepth: { high: 0, medium: 0, low: 0 },
  running: 0,
  oldestAgeMs: null,
  buckets: [],
};

export function liveOf(reply: Reply): LiveQueue {
  const [depth, effectiveDepth, running, oldestAgeMs, buckets] = listOf(reply);
  return {
    depth: byPriority(numbersOf(depth)),
    effectiveDepth: byPriority(numbersOf(effectiveDepth)),
    running: Number(running),
    oldestAgeMs: orNull(oldestAgeMs),
    buckets: inSteps(textsOf(buckets), 5, (at): LiveBucket => ({
      bucket: at(0),
      tokens: Number(at(1)),
      limit: JSON.parse(at(2)) as RateLimit,
      used: Number(at(3)),
      countedMs: Number(at(4)),
    })),
  };
}

function byPriority([high = 0, medium = 0, low = 0]: readonly number[]): Record<Priority, number> {
  return { high, medium, low };
}
