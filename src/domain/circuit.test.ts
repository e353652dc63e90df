import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { attemptErrorCodes } from './attempt-error.js';
import {
  afterTime,
  answerOf,
  closed,
  closedForMs,
  heed,
  heedAll,
  probePatienceMs,
  probesOf,
  recoveryStepMs,
  settingsUnder,
  streakToOpen,
  type Answer,
  type Circuit,
  type Ended,
  type PushBack,
  type Standing,
} from './circuit.js';
import { defaultQueueSettings, type RateLimit } from './queue-settings.js';
import { noRefusals } from './refusals.js';
import { bucketShape, refilled, reshaped, spent, waitMsFor } from './token-bucket.js';

const startMs = Date.UTC(2030, 0, 1);
const minuteMs = 60_000;
const fresh = standingAt(closed);
const answered: Answer = { kind: 'answered' };
const pushBacks: readonly PushBack[] = [
  'rate_limited',
  'unavailable',
  'quota_exhausted',
  'unauthorized',
  'forbidden',
];
const missed = (begunMs = startMs): Ended => ended('unavailable', begunMs);
const limited = (retryAfterMs = 0, begunMs = startMs): Ended =>
  ended('rate_limited', begunMs, retryAfterMs);

function standingAt(circuit: Circuit, streak = 0): Standing {
  return { circuit, streak, refusals: noRefusals, answeredMs: null };
}

/** Each of another task, unless it is named. */
let tasks = 0;
function newTask(): string {
  tasks += 1;
  return `task-${String(tasks)}`;
}

function ended(kind: PushBack, begunMs: number, retryAfterMs = 0, taskId = newTask()): Ended {
  return { taskId, begunMs, answer: { kind, retryAfterMs } };
}

function wellEnded(begunMs = startMs, taskId = newTask()): Ended {
  return { taskId, begunMs, answer: answered };
}

function silent(begunMs = startMs): Ended {
  return { taskId: newTask(), begunMs, answer: null };
}

function openCircuit(change: Partial<Circuit & { kind: 'open' }> = {}): Circuit & { kind: 'open' } {
  const untilMs = change.untilMs ?? startMs + 30_000;
  const trouble = { reason: 'unavailable', trips: 0, slots: 40 } as const;
  return { kind: 'open', ...trouble, untilMs, probesAtMs: untilMs, ...change };
}

function recovering(
  change: Partial<Circuit & { kind: 'recovering' }> = {},
): Circuit & { kind: 'recovering' } {
  const trouble = { reason: 'unavailable', trips: 0, slots: 40 } as const;
  return { kind: 'recovering', ...trouble, sinceMs: startMs, step: 0, ...change };
}

function after(circuit: Circuit, end: Ended, nowMs = startMs, streak = 0): Circuit {
  return heed(standingAt(circuit, streak), end, nowMs).circuit;
}

describe('R-RE9: what an attempt says about the service', () => {
  const say = (code: string, retryAfterSeconds?: number) =>
    answerOf({
      code,
      message: 'it went wrong',
      retriable: true,
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    });

  it('a 429 and an absence push back, and may name a time that is believed up to an hour', () => {
    expect(say('RATE_LIMITED', 7)).toEqual({ kind: 'rate_limited', retryAfterMs: 7_000 });
    expect(say('RATE_LIMITED')).toEqual({ kind: 'rate_limited', retryAfterMs: 0 });
    expect(say('UNAVAILABLE', 86_400)).toEqual({ kind: 'unavailable', retryAfterMs: 3_600_000 });
    expect(say('RATE_LIMITED', -5)).toEqual({ kind: 'rate_limited', retryAfterMs: 0 });
  });

  it('an error of its own is an answer; who ran out of time or never called says nothing', () => {
    const { timeout, outOfMemory, invalidInput, workerLost, neverStarted } = attemptErrorCodes;
    for (const code of [timeout, outOfMemory, invalidInput, workerLost, neverStarted]) {
      expect(say(code), code).toBeNull();
    }
    expect(say('MODEL_SAID_NO')).toEqual(answered);
    expect(say(attemptErrorCodes.resultTooLarge)).toEqual(answered);
  });
});

describe('R-RE9: opening', () => {
  it('429 to three different tasks in a row opens it, until the time it names, or for a second', () => {
    const three = (retryAfterMs?: number) =>
      heedAll(fresh, [limited(), limited(), limited(retryAfterMs)], startMs).circuit;
    expect(three(7_000)).toMatchObject({
      kind: 'open',
      reason: 'rate_limited',
      untilMs: startMs + 7_000,
      trips: 0,
    });
    expect(three()).toMatchObject({ untilMs: startMs + 1_000 });
    expect(heedAll(fresh, [limited(), limited()], startMs).circuit).toBe(closed);
  });

  it('an absence opens at the fifth in a row, for half a minute; an answer starts anew', () => {
    const four = Array.from({ length: streakToOpen - 1 }, () => missed());
    const answer = wellEnded();
    const silence = silent();
    expect(heedAll(fresh, four, startMs)).toMatchObject({ circuit: closed, streak: 4 });
    expect(heedAll(fresh, [...four, answer, ...four], startMs).circuit).toBe(closed);
    const { circuit, streak } = heedAll(fresh, [...four, silence, missed()], startMs);
    expect(circuit).toMatchObject({
      kind: 'open',
      reason: 'unavailable',
      untilMs: startMs + 30_000,
    });
    expect(streak).toBe(0);
  });

  it('a service that says when it is back is believed', () => {
    const end = ended('unavailable', startMs, 120_000);
    expect(after(closed, end, startMs, 4)).toMatchObject({ untilMs: startMs + 120_000 });
  });

  it('the first four cost what they always do, all later ones nothing', () => {
    const ends = Array.from({ length: 40 }, () => missed());
    const { excuses } = heedAll(fresh, ends, startMs);
    expect(excuses.slice(0, 4)).toEqual([null, null, null, null]);
    expect(excuses.slice(4)).toEqual(Array(36).fill({ restMs: 0 }));
    const { excuses: own } = heedAll(standingAt(openCircuit()), [wellEnded()], startMs);
    expect(own).toEqual([null]);
  });
});

describe('R-RE9: a key or an account that the service refuses', () => {
  const denied = (kind: PushBack, taskId = newTask()) => ended(kind, startMs, 0, taskId);

  it('the first 401 opens it, for half a minute; of a key that was just accepted the fifth does', () => {
    expect(after(closed, denied('unauthorized'))).toMatchObject({
      kind: 'open',
      reason: 'unauthorized',
      untilMs: startMs + 30_000,
    });
    const known = { ...fresh, answeredMs: startMs - 59_999 };
    const four = heedAll(
      known,
      [1, 2, 3, 4].map(() => denied('unauthorized')),
      startMs,
    );
    expect(four.circuit).toBe(closed);
    expect(heedAll(four, [denied('unauthorized')], startMs).circuit).toMatchObject({
      reason: 'unauthorized',
    });
    const long = { ...fresh, answeredMs: startMs - 60_000 };
    expect(heedAll(long, [denied('unauthorized')], startMs).circuit.kind).toBe('open');
  });

  it.each<[PushBack, number]>([
    ['forbidden', 3],
    ['quota_exhausted', 3],
  ])('%s opens it when %d different tasks in a row meet it', (kind, tasksNeeded) => {
    const ends = Array.from({ length: tasksNeeded }, () => denied(kind));
    expect(heedAll(fresh, ends.slice(1), startMs).circuit).toBe(closed);
    expect(heedAll(fresh, ends, startMs).circuit).toMatchObject({ kind: 'open', reason: kind });
    const parted = [...ends.slice(1), wellEnded(startMs), ...ends.slice(1)];
    expect(heedAll(fresh, parted, startMs).circuit).toMatchObject({ kind: 'closed' });
    const [first = denied(kind)] = ends;
    expect(heedAll(fresh, [first, first, first, first], startMs).circuit).toBe(closed);
  });

  it('of a key that was just accepted ten 403 in a row open it', () => {
    const known = { ...fresh, answeredMs: startMs - 59_999 };
    const ends = Array.from({ length: 10 }, () => denied('forbidden'));
    expect(heedAll(known, ends.slice(1), startMs).circuit).toBe(closed);
    expect(heedAll(known, ends, startMs).circuit).toMatchObject({ reason: 'forbidden' });
  });

  it('a call that began after a refused one, and is answered, ends the row; a longer one does not', () => {
    const later = startMs + 5_000;
    const ends = [denied('forbidden'), denied('forbidden')];
    const refusals = heedAll(fresh, ends, later);
    const third = denied('forbidden');
    expect(heedAll(refusals, [wellEnded(startMs + 1), third], later).circuit).toBe(closed);
    const standing = { ...refusals, answeredMs: null };
    const long = heedAll(standing, [wellEnded(startMs - 1)], later);
    expect(heedAll({ ...long, answeredMs: null }, [third], later).circuit.kind).toBe('open');
  });

  it.each([
    ['forbidden', 10],
    ['unauthorized', 40],
  ] as const)('%s to one task in %d, each for itself, does not stop the queue', (kind, others) => {
    const pick = fc.sample(fc.integer({ min: 0, max: 999 }), { numRuns: 10_000, seed: 7 });
    const calls = pick.map((number, index): [endsMs: number, Ended] => {
      const begunMs = startMs + 20 * index;
      const end = number % others === 0 ? ended(kind, begunMs) : wellEnded(begunMs);
      return [begunMs + 500 + number, end];
    });
    const inOrder = calls.toSorted(([one], [other]) => one - other);
    let standing: Standing = { ...fresh, answeredMs: startMs };
    for (const [endsMs, end] of inOrder) standing = heedAll(standing, [end], endsMs);
    expect(standing.circuit).toBe(closed);
  });

  it('the task that shows a refused key ends, those that meet it later wait', () => {
    const ends = [1, 2, 3, 4].map(() => denied('unauthorized'));
    const { excuses } = heedAll(fresh, ends, startMs);
    expect(excuses).toEqual([null, { restMs: 0 }, { restMs: 0 }, { restMs: 0 }]);
    const standing = standingAt(openCircuit({ reason: 'unauthorized' }));
    const probe = ended('unauthorized', startMs + 30_000);
    const { circuit, excuses: rests } = heedAll(standing, [probe], startMs + 30_000);
    expect(circuit).toMatchObject({ kind: 'open', trips: 1, untilMs: startMs + 90_000 });
    expect(rests).toEqual([{ restMs: 61_000 }]);
  });

  it('a 403 of one task shows that the service is back, and ends that task', () => {
    const { circuit, excuses } = heedAll(
      standingAt(openCircuit()),
      [ended('forbidden', startMs + 30_000)],
      startMs + 30_000,
    );
    expect(circuit.kind).toBe('recovering');
    expect(excuses).toEqual([null]);
  });

  it('a worker whose own key is refused does not stop the queue in recovery before it is benched', () => {
    const standing = standingAt(recovering({ reason: 'unauthorized' }));
    const four = [1, 2, 3, 4].map(() => denied('unauthorized'));
    const { circuit, excuses } = heedAll(standing, four, startMs + 5);
    expect(circuit).toBe(standing.circuit);
    expect(excuses).not.toContain(null);
  });
});

describe('R-RE9: a task that is refused while others are answered', () => {
  const poisoned = (begunMs: number) => ended('rate_limited', begunMs, 0, 'poisoned');
  const secondMs = 1_000;

  it('never stops its queue, is put off three times, and pays from then on', () => {
    let standing: Standing = fresh;
    const paid: boolean[] = [];
    for (let second = 0; second < 8; second += 1) {
      const nowMs = startMs + second * secondMs;
      const ends = [poisoned(nowMs), wellEnded(nowMs), wellEnded(nowMs)];
      const heard = heedAll(standing, ends, nowMs);
      expect(heard.circuit).toBe(closed);
      paid.push(heard.excuses[0] === null);
      standing = heard;
    }
    expect(paid).toEqual([false, false, false, true, true, true, true, true]);
  });

  it('pays as well when the others are done, and it is the last of its queue', () => {
    const others = heedAll(fresh, [poisoned(startMs), wellEnded(startMs + 1)], startMs + 1);
    let standing: Standing = others;
    const paid = [2, 3, 4, 5].map((second) => {
      const nowMs = startMs + second * secondMs;
      const heard = heedAll(standing, [poisoned(nowMs)], nowMs);
      standing = heard;
      return heard.excuses[0] === null;
    });
    expect(paid).toEqual([false, false, true, true]);
  });

  it('is put off ten times when it is the last of its queue, and others were answered before it', () => {
    const calls = (answeredMs: number) => {
      let standing: Standing = { ...fresh, answeredMs };
      return Array.from({ length: 20 }, (_, minute) => {
        const nowMs = startMs + minute * minuteMs;
        const heard = heedAll(standing, [poisoned(nowMs)], nowMs);
        standing = heard;
        return heard.excuses[0];
      });
    };
    expect(calls(startMs - 59_999).indexOf(null)).toBe(10);
    expect(calls(startMs - 60_000).indexOf(null)).toBe(-1);
  });

  it('never pays when it was alone from the beginning, and is asked less and less often', () => {
    let standing: Standing = fresh;
    const rests = Array.from({ length: 9 }, (_, second) => {
      const heard = heedAll(standing, [poisoned(startMs + second)], startMs + second);
      standing = heard;
      return heard.excuses[0]?.restMs;
    });
    expect(rests).toEqual([0, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
    expect(standing.circuit).toBe(closed);
  });

  it('does not pay for answers to calls that began before it was refused', () => {
    let standing: Standing = fresh;
    for (let second = 0; second < 9; second += 1) {
      const nowMs = startMs + second * secondMs;
      const heard = heedAll(standing, [poisoned(nowMs), wellEnded(startMs - 1)], nowMs);
      expect(heard.excuses[0]).not.toBeNull();
      standing = heard;
    }
  });

  it('stops no recovery but the first', () => {
    const nowMs = startMs + 5;
    const slow = recovering({ reason: 'rate_limited', slots: 4 });
    const { refusals, circuit } = heedAll(standingAt(slow), [poisoned(startMs)], nowMs);
    expect(circuit.kind).toBe('open');
    let standing: Standing = { ...fresh, refusals, circuit: slow };
    for (let second = 1; second < 6; second += 1) {
      const atMs = nowMs + second * secondMs;
      standing = heedAll(standing, [wellEnded(atMs), poisoned(atMs)], atMs);
      expect(standing.circuit).toBe(slow);
    }
  });

  it('whoever else is refused, answered or silent: one task alone never opens a closed circuit', () => {
    const step = fc.record({
      what: fc.constantFrom<'poisoned' | 'answered' | 'silent'>('poisoned', 'answered', 'silent'),
      afterMs: fc.integer({ min: 0, max: 5_000 }),
      ageMs: fc.integer({ min: 0, max: 60_000 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        let standing: Standing = fresh;
        let nowMs = startMs;
        let refusedTimes = 0;
        let answeredSince = false;
        for (const { what, afterMs, ageMs } of steps) {
          nowMs += afterMs;
          const begunMs = nowMs - ageMs;
          const end =
            what === 'poisoned'
              ? poisoned(begunMs)
              : what === 'answered'
                ? wellEnded(begunMs)
                : silent(begunMs);
          const { excuses, ...heard } = heedAll(standing, [end], nowMs);
          standing = heard;
          expect(standing.circuit).toBe(closed);
          if (what === 'answered') {
            answeredSince ||= refusedTimes > 0 && begunMs >= firstRefusedMs(standing);
          }
          if (what !== 'poisoned') continue;
          refusedTimes += 1;
          // It pays exactly from the fourth time on, if others were answered since the first.
          if (refusedTimes <= 10) {
            expect(excuses[0] === null).toBe(refusedTimes > 3 && answeredSince);
          }
        }
      }),
    );
  });

  function firstRefusedMs({ refusals }: Standing): number {
    return refusals.tasks.get('poisoned')?.sinceMs ?? Infinity;
  }

  it('a service that refuses everybody is stopped at the third, and nobody pays', () => {
    const orders = fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 3, maxLength: 40 });
    fc.assert(
      fc.property(orders, fc.constantFrom('rate_limited', 'quota_exhausted'), (order, kind) => {
        const ends = order.map((task) => ended(kind, startMs, 0, String(task)));
        const { circuit, excuses } = heedAll(fresh, ends, startMs);
        expect(circuit.kind).toBe(new Set(order).size >= 3 ? 'open' : 'closed');
        expect(excuses).not.toContain(null);
      }),
    );
  });

  it('ten of them among a hundred and twenty pay all, and stop nothing in the end', () => {
    let standing: Standing = fresh;
    const ids = Array.from({ length: 10 }, (_, index) => `poisoned-${String(index)}`);
    let paid = 0;
    for (let round = 0; round < 12; round += 1) {
      const nowMs = startMs + round * secondMs;
      const ends = ids.flatMap((taskId) => {
        const good = Array.from({ length: round < 2 ? 6 : 0 }, () => wellEnded(nowMs));
        return [ended('rate_limited', nowMs, 0, taskId), ...good];
      });
      const heard = heedAll(standing, ends, nowMs);
      standing = heard;
      expect(heard.circuit).toBe(closed);
      paid += heard.excuses.filter((excuse, index) => {
        return excuse === null && ends[index]?.answer?.kind === 'rate_limited';
      }).length;
    }
    expect(paid).toBe(9 * 10);
  });
});

describe('R-RE9: while it is open', () => {
  const untilMs = startMs + 30_000;

  it('stragglers change nothing, whatever they say', () => {
    const circuit = openCircuit();
    for (const nowMs of [startMs + 1, untilMs - 1, untilMs + 1]) {
      expect(after(circuit, missed(startMs), nowMs)).toBe(circuit);
      expect(after(circuit, wellEnded(), nowMs)).toBe(circuit);
    }
  });

  it('a straggler that names a later time moves the end out, and is no new trip', () => {
    const circuit = openCircuit({ trips: 3 });
    const moved = after(circuit, limited(50_000, startMs - 1), startMs + 5_000);
    expect(moved).toEqual({ ...circuit, untilMs: startMs + 55_000, probesAtMs: startMs + 55_000 });
    expect(after(circuit, limited(10_000, startMs - 1), startMs + 5_000)).toBe(circuit);
    expect(after(circuit, limited(3_600_000, startMs - 1), untilMs)).toBe(circuit);
  });

  it('a probe that is pushed back opens it again, for twice as long, up to five minutes', () => {
    const seconds = (reason: PushBack) =>
      Array.from({ length: 8 }, (_, trips) => {
        const circuit = openCircuit({ reason, trips });
        return closedForMs(after(circuit, ended(reason, untilMs), untilMs), untilMs) / 1000;
      });
    expect(seconds('unavailable')).toEqual([60, 120, 240, 300, 300, 300, 300, 300]);
    expect(seconds('rate_limited')).toEqual([2, 4, 8, 16, 32, 60, 60, 60]);
  });

  it('its time begins anew when the service names another reason', () => {
    const circuit = openCircuit({ trips: 4 });
    const next = after(circuit, limited(0, untilMs), untilMs);
    expect(next).toMatchObject({ reason: 'rate_limited', trips: 0, untilMs: untilMs + 1_000 });
  });

  it('a probe that is answered, well or not, begins the recovery', () => {
    const nowMs = untilMs + 2_000;
    expect(after(openCircuit({ trips: 2 }), wellEnded(untilMs), nowMs)).toEqual(
      recovering({ sinceMs: nowMs, trips: 2 }),
    );
  });

  it('every probe of a turn that fails rests until others have had theirs', () => {
    const standing = standingAt(openCircuit());
    const { excuses } = heedAll(standing, [missed(untilMs), missed(untilMs)], untilMs + 5);
    expect(excuses).toEqual([{ restMs: 61_000 }, { restMs: 61_000 }]);
  });

  it('a probe that ran out of time costs nothing, and rests until after the next ones', () => {
    const standing = standingAt(openCircuit());
    const { circuit, excuses } = heedAll(
      standing,
      [silent(untilMs), silent(startMs)],
      untilMs + 20_000,
    );
    expect(excuses).toEqual([{ restMs: 11_000 }, null]);
    expect(circuit).toBe(standing.circuit);
    expect(heedAll(fresh, [silent(startMs)], startMs).excuses).toEqual([null]);
  });

  it('the two probes of one turn are one trip', () => {
    const standing = standingAt(openCircuit());
    const { circuit } = heedAll(standing, [missed(untilMs), missed(untilMs)], untilMs + 5);
    expect(circuit).toMatchObject({ trips: 1 });
  });

  it('probes that come to nothing are replaced after half a minute; a slow one still counts', () => {
    const circuit = openCircuit();
    expect(afterTime(circuit, untilMs + probePatienceMs - 1)).toBe(circuit);
    const renewed = afterTime(circuit, untilMs + probePatienceMs);
    expect(renewed).toEqual({ ...circuit, probesAtMs: untilMs + probePatienceMs });
    expect(afterTime(renewed, untilMs + 2 * probePatienceMs - 1)).toBe(renewed);
    const slow = wellEnded(untilMs);
    expect(after(renewed, slow, untilMs + 45_000).kind).toBe('recovering');
  });

  it('one probe for a limit, two for an absence', () => {
    expect(probesOf(openCircuit({ reason: 'rate_limited' }))).toBe(1);
    expect(probesOf(openCircuit())).toBe(2);
    expect(probesOf(closed)).toBeNull();
    expect(probesOf(recovering())).toBeNull();
  });
});

describe('R-RE9: recovering', () => {
  it('a quarter, after ten seconds a half, after twenty all of it', () => {
    const circuit = recovering();
    expect(afterTime(circuit, startMs + recoveryStepMs - 1)).toBe(circuit);
    const half = afterTime(circuit, startMs + recoveryStepMs);
    expect(half).toEqual({ ...circuit, step: 1 });
    expect(afterTime(half, startMs + 2 * recoveryStepMs - 1)).toBe(half);
    expect(afterTime(half, startMs + 2 * recoveryStepMs)).toBe(closed);
    expect(afterTime(circuit, startMs + minuteMs)).toBe(closed);
  });

  it('429 to two tasks in a row opens it again, to go on with half as many, but not of calls from before', () => {
    const circuit = recovering({ reason: 'rate_limited', trips: 4 });
    const nowMs = startMs + 5;
    const two = (change: object, ...ends: Ended[]) =>
      heedAll(standingAt({ ...circuit, ...change }), ends, nowMs).circuit;
    expect(two({}, limited(0, startMs), limited(0, startMs))).toMatchObject({
      kind: 'open',
      untilMs: nowMs + 1_000,
      trips: 0,
      slots: 20,
    });
    expect(two({ slots: 1 }, limited(), limited())).toMatchObject({ slots: 1 });
    const before = [limited(60_000, startMs - 1), limited(60_000, startMs - 1)];
    expect(two({}, ...before)).toEqual(circuit);
    expect(two({}, limited(), wellEnded(nowMs), limited())).toEqual(circuit);
  });

  it('a lone absence does not open it again, five in a row do', () => {
    const circuit = recovering();
    const standing = standingAt(circuit);
    const now = startMs + 5;
    const four = Array.from({ length: 4 }, () => missed(startMs));
    const before = Array.from({ length: 9 }, () => missed(startMs - 1));
    expect(heedAll(standing, [...before, ...four], now)).toMatchObject({ circuit, streak: 4 });
    expect(heedAll(standing, [...four, missed(startMs)], now).circuit).toMatchObject({
      kind: 'open',
      trips: 1,
    });
    expect(heedAll(standing, four, now).excuses).not.toContain(null);
  });

  it('lets a share of the slots run, one at least, and never more than its own', () => {
    const most = (slots: number, step: 0 | 1, maxConcurrency: number | null = null) =>
      settingsUnder(recovering({ slots, step }), { ...defaultQueueSettings, maxConcurrency })
        .maxConcurrency;
    expect([most(40, 0), most(40, 1)]).toEqual([10, 20]);
    expect([most(5, 0), most(0, 0), most(1, 1)]).toEqual([2, 1, 1]);
    expect([most(40, 0, 100), most(40, 0, 3)]).toEqual([10, 3]);
  });

  it('slows its own limits, not the shared ones, and none that could not be counted then', () => {
    const own: RateLimit = { unit: 'requests', rate: 500, perSeconds: 60, burst: null };
    const huge: RateLimit = { unit: 'tokens', rate: 1e9, perSeconds: 8_000, burst: null };
    const settings = { ...defaultQueueSettings, limits: [own, { use: 'account' }, huge] };
    const slow = (step: 0 | 1) => settingsUnder(recovering({ step }), settings).limits;
    expect(slow(0)).toEqual([{ ...own, perSeconds: 240 }, { use: 'account' }, huge]);
    expect(slow(1)).toEqual([{ ...own, perSeconds: 120 }, { use: 'account' }, huge]);
    expect(settingsUnder(openCircuit(), settings)).toBe(settings);
    expect(settingsUnder(closed, settings)).toBe(settings);
  });
});

describe('R-RE9: over a whole outage', () => {
  interface Call {
    readonly begunMs: number;
    readonly endsMs: number;
    readonly retryAfterMs: number;
  }

  /** The next call to be answered, or the next tick of a server, whichever comes first. */
  function storm(reason: PushBack, calls: Call[], newCall: (begunMs: number) => Call): number {
    let standing = standingAt(closed, streakToOpen - 1);
    let told: Circuit = closed;
    let probesLeft = 0;
    let begun = 0;
    for (let nowMs = startMs; nowMs < startMs + minuteMs; nowMs += 50) {
      const answers = calls.filter(({ endsMs }) => endsMs <= nowMs);
      calls = calls.filter(({ endsMs }) => endsMs > nowMs);
      const ends = answers.map((call) => ended(reason, call.begunMs, call.retryAfterMs));
      standing = heedAll(standing, ends, nowMs);
      standing = { ...standing, circuit: afterTime(standing.circuit, nowMs) };
      if (standing.circuit !== told) probesLeft = probesOf(standing.circuit) ?? 0;
      told = standing.circuit;
      while (told.kind === 'open' && closedForMs(told, nowMs) === 0 && probesLeft > 0) {
        calls.push(newCall(nowMs));
        probesLeft -= 1;
        begun += 1;
      }
    }
    return begun;
  }

  const latencies = fc.array(fc.integer({ min: 1, max: 70_000 }), { minLength: 1, maxLength: 40 });
  const retryAfters = fc.array(fc.integer({ min: 0, max: 120 }), { minLength: 1, maxLength: 20 });

  it('a service that pushes back for a minute, whatever time it names, costs ten calls more', () => {
    const reasons = fc.constantFrom(...pushBacks);
    fc.assert(
      fc.property(reasons, latencies, retryAfters, (reason, durations, seconds) => {
        let calls = 0;
        const newCall = (begunMs: number): Call => {
          calls += 1;
          const durationMs = durations[calls % durations.length] ?? 1;
          const retryAfterMs = (seconds[calls % seconds.length] ?? 0) * 1000;
          return { begunMs, endsMs: begunMs + durationMs, retryAfterMs };
        };
        const inFlight = durations.map(() => newCall(startMs - 1));
        // Three of them have just been answered.
        const answer = { begunMs: startMs - 1, endsMs: startMs, retryAfterMs: 0 };
        inFlight.push(answer, answer, answer);
        expect(storm(reason, inFlight, newCall)).toBeLessThanOrEqual(10);
      }),
      { numRuns: 100 },
    );
  });

  /** Calls of a second each, of which so many are answered, for ten minutes. */
  function served(allowed: number, slots: number): { answers: number; refusals: number } {
    let standing = fresh;
    const count = { answers: 0, refusals: 0 };
    for (let nowMs = startMs; nowMs < startMs + 10 * minuteMs; nowMs += 1_000) {
      const { circuit } = standing;
      const { maxConcurrency } = settingsUnder(circuit, defaultQueueSettings);
      const most = probesOf(circuit) ?? maxConcurrency ?? slots;
      const calls = closedForMs(circuit, nowMs) > 0 ? 0 : most;
      const ends = Array.from({ length: calls }, (_, index): Ended => {
        return index < allowed ? wellEnded(nowMs) : limited(0, nowMs);
      });
      count.answers += Math.min(calls, allowed);
      count.refusals += Math.max(0, calls - allowed);
      standing = heedAll(standing, ends, nowMs + 1_000);
      if (circuit.kind === 'closed' && standing.circuit.kind === 'open') {
        standing = { ...standing, circuit: { ...standing.circuit, slots } };
      }
      standing = { ...standing, circuit: afterTime(standing.circuit, nowMs + 1_000) };
    }
    return count;
  }

  it('a service that allows less than the queue asks for is used, and not pestered', () => {
    for (const allowed of [1, 2, 5, 10, 20, 39]) {
      const { answers, refusals } = served(allowed, 40);
      expect(answers / (600 * allowed), `${allowed} of 40`).toBeGreaterThan(0.35);
      expect(refusals / answers, `${allowed} of 40`).toBeLessThan(1.5);
    }
  });

  it('whatever happens, it goes on in the end: twenty seconds after an answer it is closed', () => {
    const ends = fc.record({
      afterMs: fc.integer({ min: 0, max: 40_000 }),
      ageMs: fc.integer({ min: 0, max: 90_000 }),
      kind: fc.constantFrom<'answered' | PushBack | null>('answered', ...pushBacks, null),
      task: fc.integer({ min: 0, max: 5 }),
      retryAfterMs: fc.integer({ min: 0, max: 3_600_000 }),
    });
    fc.assert(
      fc.property(fc.array(ends, { maxLength: 60 }), (history) => {
        let standing = fresh;
        let nowMs = startMs;
        for (const { afterMs, ageMs, kind, retryAfterMs, task } of history) {
          nowMs += afterMs;
          const answer = kind === 'answered' ? answered : kind && { kind, retryAfterMs };
          const before = standing.circuit;
          const taskId = String(task);
          standing = heed(standing, { taskId, begunMs: nowMs - ageMs, answer }, nowMs);
          const { circuit } = standing;
          // What an earlier time would allow is never allowed by a later word.
          if (before.kind === 'open' && circuit.kind === 'open') {
            expect(circuit.untilMs).toBeGreaterThanOrEqual(before.untilMs);
            expect(circuit.slots).toBe(before.slots);
          }
          expect(closedForMs(circuit, nowMs)).toBeLessThanOrEqual(3_600_000);
          standing = { ...standing, circuit: afterTime(circuit, nowMs) };
        }
        nowMs += 3_600_000;
        standing = heed(standing, wellEnded(nowMs), nowMs);
        expect(afterTime(standing.circuit, nowMs + 20_000)).toBe(closed);
      }),
    );
  });

  it('R-CH4: no window is over the limit while the rate falls and rises again', () => {
    const limits = fc.record({
      unit: fc.constant('requests'),
      rate: fc.integer({ min: 1, max: 60 }),
      perSeconds: fc.integer({ min: 1, max: 8 }),
      burst: fc.constant(null),
    });
    const stretches = fc.array(
      fc.record({
        step: fc.constantFrom<0 | 1 | null>(0, 1, null),
        forMs: fc.integer({ min: 1, max: 9_000 }),
      }),
      { minLength: 1, maxLength: 8 },
    );
    fc.assert(
      fc.property(limits, stretches, (limit, history) => {
        let shape = bucketShape(limit);
        let level = shape.capacity;
        let nowMs = 0;
        const grants: number[] = [];
        for (const { step, forMs } of history) {
          const circuit = step === null ? closed : recovering({ step });
          const [now = limit] = settingsUnder(circuit, {
            ...defaultQueueSettings,
            limits: [limit],
          }).limits;
          const next = bucketShape('use' in now ? limit : now);
          level = reshaped(level, shape, next);
          shape = next;
          const endsMs = nowMs + forMs;
          for (;;) {
            const waitMs = waitMsFor(shape, level, 1);
            if (nowMs + waitMs >= endsMs) break;
            level = spent(shape, refilled(shape, level, waitMs), 1);
            nowMs += waitMs;
            grants.push(nowMs);
          }
          level = refilled(shape, level, endsMs - nowMs);
          nowMs = endsMs;
        }
        const windowMs = limit.perSeconds * 1000;
        grants.forEach((atMs, index) => {
          const past = grants[index - limit.rate];
          if (past !== undefined) expect(atMs - past).toBeGreaterThanOrEqual(windowMs);
        });
      }),
    );
  });
});
