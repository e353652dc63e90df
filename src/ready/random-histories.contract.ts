import fc from 'fast-check';
import { expect } from 'vitest';
import type { TaskId } from '../domain/ids.js';
import { laneKey } from '../domain/lane.js';
import { defaultQueueSettings } from '../domain/queue-settings.js';
import { ManualClock } from '../runtime/clock.js';
import { knownHistories } from './known-histories.contract.js';
import {
  history,
  type Operation,
  type QueueChange,
  type SharedLimit,
} from './random-operations.contract.js';
import { ReferenceReadyQueue } from './reference-ready-queue.contract.js';
import type {
  BucketLevel,
  ConfiguredLimit,
  ConfiguredQueue,
  Offer,
  Out,
  OutCursor,
  Position,
  ReadyQueue,
  ReadyState,
  TakeAnswer,
  Wake,
  Window,
} from './ready-queue.js';
import { restore, type ReadyQueueUnderTest } from './workbench.contract.js';

/** Of so many steps one is followed by an audit. */
const auditEvery = 3;

type Step = Exclude<Operation, { kind: 'advance' }>;

/**
 * Feeds the same random operations to a ready queue and to one that sorts everything each time,
 * and compares every answer and every wake-up. The clock must stand still unless it is advanced.
 * Where others take as well, nothing is announced.
 */
export async function agreeOnRandomHistories(
  make: () => Promise<ReadyQueueUnderTest>,
  numRuns: number,
  { announces = false, comparesWakes = true } = {},
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(history, async (operations) => {
      const subject = await make();
      const able = operations.filter(({ kind }) => announces || kind !== 'announce');
      try {
        await agree(subject, able, comparesWakes);
      } finally {
        await subject.queue.close();
      }
    }),
    { numRuns, examples: knownHistories.map((known) => [[...known]]) },
  );
}

async function agree(
  subject: ReadyQueueUnderTest,
  operations: Operation[],
  comparesWakes: boolean,
): Promise<void> {
  const clock = new ManualClock(await subject.nowMs());
  const model = new ReferenceReadyQueue(() => clock.nowMs());
  const reference = {
    queue: model,
    nowMs: () => clock.nowMs(),
    advance: (ms: number) => clock.advance(ms),
    driftMs: 0,
  };
  const seen = recordWakes(subject.queue);
  const expected = recordWakes(model);
  const announced: TaskId[] = [];
  for (const [index, step] of operations.entries()) {
    if (step.kind === 'advance') {
      const left = announced.splice(0);
      for (const side of [subject, reference]) {
        // What was announced and not taken is taken back before time goes on.
        await side.queue.remove(left);
        await side.advance(step.ms);
      }
      expect(inOrder(seen.splice(0))).toEqual(inOrder(expected.splice(0)));
      continue;
    }
    if (step.kind === 'announce') announced.push(...step.newcomers.map(({ taskId }) => taskId));
    const answer = await perform(step, subject, index);
    compare(answer, await perform(step, reference, index), model);
    const [seenNow, expectedNow] = [inOrder(seen.splice(0)), inOrder(expected.splice(0))];
    const isComparable = comparesWakes && !mayRaiseShared(step, operations);
    if (isComparable) expect(seenNow).toEqual(expectedNow);
    if (index % auditEvery === 0) await subject.audit?.();
  }
  await subject.audit?.();
}

/** Who is told that there is more in a shared limit is each implementation's own matter. */
function mayRaiseShared({ kind }: Step, operations: readonly Operation[]): boolean {
  if (kind === 'limit') return true;
  if (kind !== 'refund' && kind !== 'finish') return false;
  return operations.some(
    (step) => step.kind === 'limit' || (step.kind === 'restore' && step.limits.length > 0),
  );
}

/** An answer, and what of it is not compared word by word. */
type Answer =
  | { readonly kind: 'plain'; readonly answer: unknown }
  | { readonly kind: 'take'; readonly answer: unknown; readonly waitMs: number | null }
  | { readonly kind: 'levels'; readonly levels: readonly BucketLevel[] };

function compare(answer: Answer, expected: Answer, model: ReferenceReadyQueue): void {
  if (answer.kind === 'levels' && expected.kind === 'levels') {
    // More may be told than has changed, but nothing that is not so.
    expect(answer.levels).toEqual(expect.arrayContaining([...expected.levels]));
    for (const { bucket, tokens } of answer.levels) expect(tokens).toBe(model.tokensOf(bucket));
    return;
  }
  if (answer.kind === 'take' && expected.kind === 'take') {
    expect(answer.answer).toEqual(expected.answer);
    if (answer.waitMs === expected.waitMs) return;
    const { shortestWaitMs } = model;
    const latestMs = expected.waitMs ?? Number.POSITIVE_INFINITY;
    expect(answer.waitMs).toBeGreaterThanOrEqual(shortestWaitMs ?? Number.POSITIVE_INFINITY);
    expect(answer.waitMs).toBeLessThan(latestMs);
    return;
  }
  expect(answer).toEqual(expected);
}

/** Of the ages, whether the sample stands for all that waits. */
async function surveyAll(queue: ReadyQueue): Promise<unknown> {
  let sampled = 0;
  const queues = await queue.survey((_priority, _ageMs, count) => {
    sampled += count;
  });
  const byName = queues.toSorted((a, b) => (a.queue < b.queue ? -1 : 1));
  return { queues: byName, sampled: Math.round(sampled) };
}

/** Which of several queues is told first makes no difference. */
function inOrder(wakes: readonly Wake[]): string[] {
  return wakes.map((wake) => JSON.stringify(wake)).sort();
}

function recordWakes(queue: ReadyQueue): Wake[] {
  const wakes: Wake[] = [];
  queue.onWake(({ lanes, count }) => {
    const sorted = [...lanes].sort((a, b) => (laneKey(a) < laneKey(b) ? -1 : 1));
    wakes.push({ lanes: sorted, count });
    return count;
  });
  return wakes;
}

async function perform(step: Step, side: ReadyQueueUnderTest, index: number): Promise<Answer> {
  const { queue } = side;
  if (step.kind === 'take') return takeAnswer(queue, await queue.take(step.request));
  if (step.kind === 'levels') return { kind: 'levels', levels: await queue.levels() };
  return { kind: 'plain', answer: await performPlain(step, side, index) };
}

async function performPlain(
  step: Exclude<Step, { kind: 'take' | 'levels' }>,
  side: ReadyQueueUnderTest,
  index: number,
): Promise<unknown> {
  const { queue } = side;
  const nowMs = await side.nowMs();
  switch (step.kind) {
    case 'offer':
      return queue.offer(step.offers.map((offer, nth) => placed(offer, nowMs, index, nth)));
    case 'announce': {
      // It was never told of any of them.
      const missing = await queue.missing(step.newcomers.map(({ taskId }) => taskId));
      return queue.announce(step.newcomers.filter(({ taskId }) => missing.includes(taskId)));
    }
    case 'finish':
      return queue.finish(
        step.finished.map(({ isOfLast, ...one }) => ({
          ...one,
          ...(isOfLast ? lastGrant(queue, one.taskId) : { grant: 'none' }),
        })),
      );
    case 'confirm':
    case 'refund':
      return queue[step.kind](step.taskIds.map((taskId) => lastGrant(queue, taskId)));
    case 'remove':
    case 'missing':
      return queue[step.kind](step.taskIds);
    case 'configure':
      return isTold(queue.configure({ limits: [], queues: [configured(step.queue, index)] }));
    case 'limit':
      return isTold(queue.configure({ limits: [configuredLimit(step.limit, index)], queues: [] }));
    case 'position':
      return queue.position(step.taskId, step.limit);
    case 'live':
      return queue.live(step.queue);
    case 'survey':
      return surveyAll(queue);
    case 'look':
      return lookAt(queue, step);
    case 'leave':
      return queue.leave(step.places.map((place, nth) => placed(place, nowMs, index, nth)));
    case 'feed': {
      const offers = step.offers.map((offer, nth) =>
        placed({ ...offer, ...step.window }, nowMs, index, nth),
      );
      return feed(queue, step, offers);
    }
    case 'listOut':
      return allOut(queue, step.limit);
    case 'restore':
      return restore(side, restoredState(step, index));
  }
}

/** Among those of one age the sequence decides: it must not repeat itself. */
function placed<T extends { readonly ageMs: number }>(
  aged: T,
  nowMs: number,
  index: number,
  nth: number,
): T & Position {
  return { ...aged, eligibleAtMs: nowMs - aged.ageMs, seq: index * 100 + nth };
}

/** By queue and window: a round is its own matter, so looks are compared without it. */
const rounds = new WeakMap<ReadyQueue, Map<string, number>>();

async function lookAt(queue: ReadyQueue, step: Extract<Step, { kind: 'look' }>): Promise<unknown> {
  const { lane, priority, toFeed } = step;
  const window = { lane, priority };
  const [look] = await (toFeed ? queue.beginFeed([window]) : queue.look([window]));
  const known = rounds.get(queue) ?? new Map<string, number>();
  rounds.set(queue, known.set(keyOf(window), look?.left?.round ?? -1));
  const behind = await queue.listBehind();
  return { room: look?.room, from: look?.left?.from, behind: behind.map(keyOf).sort() };
}

/** Of the round that was looked at last: often another feed came after it. */
async function feed(
  queue: ReadyQueue,
  { window, hasNext }: Extract<Step, { kind: 'feed' }>,
  offers: readonly Offer[],
): Promise<unknown> {
  const line = [...offers].sort((a, b) => a.eligibleAtMs - b.eligibleAtMs || a.seq - b.seq);
  const round = rounds.get(queue)?.get(keyOf(window)) ?? -1;
  const last = line.at(-1);
  const next = hasNext && last ? { eligibleAtMs: last.eligibleAtMs, seq: last.seq + 1 } : null;
  return queue.feed([{ window, round, offers: line, next }]);
}

function keyOf({ lane, priority }: Window): string {
  return `${priority} ${laneKey(lane)}`;
}

function configured(
  { name, versionsBack, pausedForMs, probes, ...changed }: QueueChange,
  index: number,
): ConfiguredQueue {
  const settings = { ...defaultQueueSettings, ...changed };
  return { name, version: index - versionsBack, settings, pausedForMs, probes };
}

function configuredLimit(
  { name, versionsBack, limit }: SharedLimit,
  index: number,
): ConfiguredLimit {
  return { name, version: index - versionsBack, limit };
}

function restoredState(
  { running, levels, behind, ...change }: Extract<Step, { kind: 'restore' }>,
  index: number,
): ReadyState {
  const limits = change.limits.map((limit) => configuredLimit(limit, index));
  const queues = change.queues.map((queue) => configured(queue, index));
  return { generation: index + 1, limits, queues, levels, running, behind };
}

/** By queue: a grant is its own matter, so answers are compared without it. */
const grants = new WeakMap<ReadyQueue, Map<TaskId, string>>();

function takeAnswer(queue: ReadyQueue, answer: TakeAnswer): Answer {
  if (answer.kind === 'rebuild') return { kind: 'plain', answer };
  const { waitMs, ...rest } = answer;
  if (rest.kind === 'wait') return { kind: 'take', answer: rest, waitMs };
  const known = grants.get(queue) ?? new Map<TaskId, string>();
  grants.set(queue, known);
  const entries = rest.entries.map(({ grant, ...entry }) => {
    known.set(entry.taskId, grant);
    return entry;
  });
  return { kind: 'take', answer: { ...rest, entries }, waitMs };
}

/** Also of a taking that is long over: the task may wait, run or be taken again. */
function lastGrant(queue: ReadyQueue, taskId: TaskId) {
  return { taskId, grant: grants.get(queue)?.get(taskId) ?? 'none' };
}

/** In the order of their ids: among those of one millisecond it is left open. */
async function allOut(queue: ReadyQueue, limit: number): Promise<unknown> {
  const all: Out[] = [];
  let after: OutCursor | null = null;
  do {
    const stretch = await queue.listOut(after, limit);
    all.push(...stretch.entries);
    after = stretch.next;
  } while (after !== null);
  const ages = all.map(({ forMs }) => forMs);
  return {
    oldestFirst: ages.every((forMs, index) => index === 0 || forMs <= (ages[index - 1] ?? 0)),
    entries: all.map(({ grant, ...out }) => out).sort((a, b) => (a.taskId < b.taskId ? -1 : 1)),
  };
}

/** Grants are numbered differently. */
async function isTold(configured: ReturnType<ReadyQueue['configure']>): Promise<boolean> {
  return (await configured) !== null;
}
