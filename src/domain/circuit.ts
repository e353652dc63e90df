import { attemptErrorCodes, type AttemptError } from './attempt-error.js';
import type { QueueLimit, QueueSettings } from './queue-settings.js';
import {
  answeredOne,
  differentIn,
  noRefusals,
  refused,
  restMsOf,
  suspicionOf,
  type Refusal,
  type Refusals,
} from './refusals.js';
import { maxRetryAfterSeconds, type Excuse } from './retry-policy.js';
import { bucketShape } from './token-bucket.js';

/** How a service says that it wants no calls for now: it refuses them, or nobody answers. */
export type PushBack = Refusal | 'unavailable';

/**
 * Whether the service behind a queue is called. Open: nothing is taken until `untilMs`, then a few
 * probes, until one of them tells whether it answers again. Recovering: a quarter of the rate, then
 * half of it.
 */
export type Circuit =
  | { readonly kind: 'closed' }
  | (Trouble & {
      readonly kind: 'open';
      readonly untilMs: number;
      /** When the latest probes were let go: at `untilMs`, and again if they came to nothing. */
      readonly probesAtMs: number;
    })
  | (Trouble & { readonly kind: 'recovering'; readonly sinceMs: number; readonly step: 0 | 1 });

interface Trouble {
  readonly reason: PushBack;
  /** How often it opened before, for this reason, since it was last closed. */
  readonly trips: number;
  /** How many ran when it opened first; fewer when that turned out to be too many. */
  readonly slots: number;
}

type Open = Circuit & { kind: 'open' };

/** What an attempt's end says about the service. */
export type Answer =
  { readonly kind: 'answered' } | { readonly kind: PushBack; readonly retryAfterMs: number };

export interface Ended {
  readonly taskId: string;
  readonly begunMs: number;
  /** Null: it says nothing. */
  readonly answer: Answer | null;
}

export interface Standing {
  readonly circuit: Circuit;
  /** Attempts in a row that found nobody there. */
  readonly streak: number;
  readonly refusals: Refusals;
  /** When the service last answered a task of this queue; null: not since the server started. */
  readonly answeredMs: number | null;
}

export const closed: Circuit = { kind: 'closed' };

/** A service that misses a call now and then is not down. */
export const streakToOpen = 5;
/** Probes that nobody has reported for so long came to nothing: others are let go. */
export const probePatienceMs = 30_000;
export const recoveryStepMs = 10_000;

interface Rule {
  /** Different tasks in a row that open a closed circuit. */
  readonly tasks: number;
  /** And one that recovers, of which so many calls may run at once. */
  readonly inRecovery: (calls: number) => number;
  readonly probes: number;
  readonly firstOpenMs: number;
  readonly maxOpenMs: number;
}

/** A 429 in recovery says that the pace is still too fast. Where two may run, one of them says so. */
const tooFast = (calls: number): number => (calls > 2 ? 2 : 1);
/** As often as a worker fails before it is benched: it may be its own key that is refused. */
const denied = { tasks: 3, inRecovery: () => 5 };
const forLong = { probes: 1, firstOpenMs: 30_000, maxOpenMs: 300_000 };
const rules: Readonly<Record<PushBack, Rule>> = {
  rate_limited: {
    tasks: 3,
    inRecovery: tooFast,
    probes: 1,
    firstOpenMs: 1_000,
    maxOpenMs: 60_000,
  },
  quota_exhausted: { tasks: 3, inRecovery: tooFast, ...forLong },
  unauthorized: { ...denied, tasks: 1, ...forLong },
  forbidden: { ...denied, ...forLong },
  unavailable: { tasks: streakToOpen, inRecovery: () => streakToOpen, ...forLong, probes: 2 },
};
/** The key was accepted so shortly before that a refusal may be of the task alone: its own key, or what it asks for. */
const knownKeyMs = 60_000;
/** Where one task in ten is answered 403, three in a row come every few seconds, and ten never. */
const tasksOfKnownKey: ReadonlyMap<Refusal, number> = new Map([
  ['unauthorized', 5],
  ['forbidden', 10],
]);
/** By step: every n-th call is made. */
const slowdowns = [4, 2] as const;
/** The clocks of Postgres and of the ready queue may differ by this, and probes go by both. */
const clockSlackMs = 250;
/** A pause that would end so little later is not worth a write. */
const postponedByMs = 100;
/** So much after the next probes a failed one comes back: others have their turn at it first. */
const probeRestMs = 1_000;

/** What ran out of time or memory, or never called, says nothing. Any other error is an answer. */
const sayNothing: ReadonlySet<string> = new Set([
  attemptErrorCodes.timeout,
  attemptErrorCodes.outOfMemory,
  attemptErrorCodes.invalidInput,
  attemptErrorCodes.workerLost,
  attemptErrorCodes.neverStarted,
]);

const answers: ReadonlyMap<string, PushBack> = new Map([
  [attemptErrorCodes.rateLimited, 'rate_limited'],
  [attemptErrorCodes.unavailable, 'unavailable'],
  [attemptErrorCodes.quotaExhausted, 'quota_exhausted'],
  [attemptErrorCodes.unauthorized, 'unauthorized'],
  [attemptErrorCodes.forbidden, 'forbidden'],
]);

export function answerOf({ code, retryAfterSeconds = 0 }: AttemptError): Answer | null {
  const kind = answers.get(code);
  if (kind === undefined) return sayNothing.has(code) ? null : { kind: 'answered' };
  const retryAfterMs = Math.max(0, Math.min(retryAfterSeconds, maxRetryAfterSeconds)) * 1000;
  return { kind, retryAfterMs };
}

/**
 * After one attempt. The same circuit, as an object: nothing is to be written. Stragglers, which began
 * before it opened or before it began to recover, tell nothing new: except that the service may name a
 * later time.
 */
export function heed(standing: Standing, ended: Ended, nowMs: number): Standing {
  const { circuit } = standing;
  const { answer, begunMs } = ended;
  if (answer === null) return standing;
  if (!isTelling(circuit, begunMs)) {
    return { ...standing, circuit: postponed(circuit, answer, nowMs) };
  }
  if (answer.kind === 'answered' || isAnswerOfOthers(circuit, answer.kind)) {
    return heedAnswer(standing, ended, nowMs);
  }
  if (circuit.kind === 'open') return open(standing, answer.kind, answer.retryAfterMs, nowMs);
  return answer.kind === 'unavailable'
    ? heedAbsence(standing, answer.retryAfterMs, nowMs)
    : heedRefusal(standing, ended, answer.kind, answer.retryAfterMs, nowMs);
}

/** A 403 may concern one task only. It shows that the service is there. */
function isAnswerOfOthers(circuit: Circuit, kind: PushBack): boolean {
  return kind === 'forbidden' && circuit.kind === 'open' && circuit.reason !== 'forbidden';
}

function heedAnswer(standing: Standing, { taskId, begunMs }: Ended, nowMs: number): Standing {
  return {
    circuit: answered(standing.circuit, nowMs),
    streak: 0,
    refusals: answeredOne(standing.refusals, taskId, begunMs),
    answeredMs: nowMs,
  };
}

/** In recovery, too, a lone miss is no outage: where one call in a hundred fails, it would never end. */
function heedAbsence(standing: Standing, retryAfterMs: number, nowMs: number): Standing {
  const streak = standing.streak + 1;
  if (streak < streakToOpen) return { ...standing, streak };
  return open(standing, 'unavailable', retryAfterMs, nowMs);
}

/** One task may be refused for itself. Only several different ones in a row speak for the service. */
function heedRefusal(
  standing: Standing,
  { taskId, begunMs }: Ended,
  kind: Refusal,
  retryAfterMs: number,
  nowMs: number,
): Standing {
  const { answeredMs } = standing;
  const refusals = refused(standing.refusals, kind, { taskId, begunMs, nowMs, answeredMs });
  if (suspicionOf(refusals, taskId) !== 'none') return { ...standing, refusals };
  if (differentIn(refusals, kind) < neededTasks(standing, kind, nowMs)) {
    return { ...standing, refusals };
  }
  return open({ ...standing, refusals }, kind, retryAfterMs, nowMs);
}

function neededTasks({ circuit, answeredMs }: Standing, kind: Refusal, nowMs: number): number {
  if (circuit.kind === 'recovering') return rules[kind].inRecovery(shareOf(circuit));
  const isKnownKey = answeredMs !== null && nowMs - answeredMs < knownKeyMs;
  const ofKnownKey = isKnownKey ? tasksOfKnownKey.get(kind) : undefined;
  return ofKnownKey ?? rules[kind].tasks;
}

/**
 * The refusals that opened a closed circuit were the service's: their tasks are forgiven. Later ones are
 * remembered: a task that is never accepted would else stop the queue in every recovery.
 */
function open(
  { circuit, answeredMs, refusals }: Standing,
  reason: PushBack,
  retryAfterMs: number,
  nowMs: number,
): Standing {
  const after = opened(circuit, reason, retryAfterMs, nowMs);
  const known = circuit.kind === 'closed' ? noRefusals : { ...refusals, row: [] };
  return { circuit: after, streak: 0, refusals: known, answeredMs };
}

/** After attempts in the order of their reports, with the excuse of each: null when it has none. */
export function heedAll(
  standing: Standing,
  ended: readonly Ended[],
  nowMs: number,
): Standing & { readonly excuses: readonly (Excuse | null)[] } {
  let after = standing;
  const excuses = ended.map((end) => {
    const before = after;
    after = heed(before, end, nowMs);
    return excuseOf(before, after, end, nowMs);
  });
  return { ...after, excuses };
}

/** What time alone makes of it: the next step of its recovery, or new probes. */
export function afterTime(circuit: Circuit, nowMs: number): Circuit {
  switch (circuit.kind) {
    case 'closed':
      return circuit;
    case 'open':
      if (nowMs < circuit.probesAtMs + probePatienceMs) return circuit;
      return { ...circuit, probesAtMs: nowMs };
    case 'recovering': {
      if (nowMs >= circuit.sinceMs + 2 * recoveryStepMs) return closed;
      const isNext = circuit.step === 0 && nowMs >= circuit.sinceMs + recoveryStepMs;
      return isNext ? { ...circuit, step: 1 } : circuit;
    }
  }
}

/** At most so many are taken before they are judged; null: no bound. */
export function probesOf(circuit: Circuit): number | null {
  return circuit.kind === 'open' ? rules[circuit.reason].probes : null;
}

/** How long nothing is taken at all. */
export function closedForMs(circuit: Circuit, nowMs: number): number {
  return circuit.kind === 'open' ? Math.max(0, circuit.untilMs - nowMs) : 0;
}

/** The share of the queue's rates that is granted; 1 unless it recovers. */
export function recoveryFactor(circuit: Circuit): number {
  return circuit.kind === 'recovering' ? 1 / slowdowns[circuit.step] : 1;
}

/** What holds instead of the settings: in recovery, a share of the slots and of the queue's own rates. */
export function settingsUnder(circuit: Circuit, settings: QueueSettings): QueueSettings {
  if (circuit.kind !== 'recovering') return settings;
  const slowdown = slowdowns[circuit.step];
  const share = shareOf(circuit);
  return {
    ...settings,
    maxConcurrency: Math.min(settings.maxConcurrency ?? share, share),
    limits: settings.limits.map((limit) => slowed(limit, slowdown)),
  };
}

/** How many may run at once while it recovers. */
function shareOf({ slots, step }: Circuit & { kind: 'recovering' }): number {
  return Math.max(1, Math.ceil(slots / slowdowns[step]));
}

/** The same number in a longer window, so that it stays whole. A window too long to count in stays. */
function slowed(limit: QueueLimit, slowdown: number): QueueLimit {
  if ('use' in limit) return limit;
  const slow = { ...limit, perSeconds: limit.perSeconds * slowdown };
  return Number.isSafeInteger(bucketShape(slow).capacity) ? slow : limit;
}

function isTelling(circuit: Circuit, begunMs: number): boolean {
  switch (circuit.kind) {
    case 'closed':
      return true;
    case 'open':
      return begunMs >= circuit.untilMs - clockSlackMs;
    case 'recovering':
      return begunMs >= circuit.sinceMs;
  }
}

function answered(circuit: Circuit, nowMs: number): Circuit {
  if (circuit.kind !== 'open') return circuit;
  const { reason, trips, slots } = circuit;
  return { kind: 'recovering', reason, trips, slots, sinceMs: nowMs, step: 0 };
}

function opened(circuit: Circuit, reason: PushBack, retryAfterMs: number, nowMs: number): Open {
  const { trips, slots } = troubleAgain(circuit, reason);
  const { firstOpenMs, maxOpenMs } = rules[reason];
  const openMs = Math.max(retryAfterMs, Math.min(firstOpenMs * 2 ** trips, maxOpenMs));
  const untilMs = Math.ceil(nowMs + openMs);
  return { kind: 'open', reason, trips, slots, untilMs, probesAtMs: untilMs };
}

/**
 * With another reason its time begins anew. A 429 in recovery is no refusal of everything, since a
 * probe was answered: it is called too often still, and goes on with half as many.
 */
function troubleAgain(circuit: Circuit, reason: PushBack): Omit<Trouble, 'reason'> {
  if (circuit.kind === 'closed') return { trips: 0, slots: 0 };
  const { slots } = circuit;
  if (circuit.kind === 'recovering' && reason === 'rate_limited') {
    return { trips: 0, slots: Math.max(1, Math.ceil(slots / 2)) };
  }
  return { trips: circuit.reason === reason ? circuit.trips + 1 : 0, slots };
}

function postponed(circuit: Circuit, answer: Answer, nowMs: number): Circuit {
  if (circuit.kind !== 'open' || nowMs >= circuit.untilMs) return circuit;
  if (answer.kind !== 'rate_limited') return circuit;
  const untilMs = Math.ceil(nowMs + answer.retryAfterMs);
  if (untilMs < circuit.untilMs + postponedByMs) return circuit;
  return { ...circuit, untilMs, probesAtMs: untilMs };
}

/**
 * What a service refuses while it is known to be in trouble is not the task's fault. A probe that
 * failed lets others go first: else the oldest task alone would be asked again and again, and if it is
 * what breaks the service, the queue would never go on.
 */
function excuseOf(before: Standing, after: Standing, ended: Ended, nowMs: number): Excuse | null {
  const { answer, begunMs, taskId } = ended;
  if (answer === null) return excuseOfSilent(before.circuit, begunMs, nowMs);
  switch (answer.kind) {
    case 'answered':
      return null;
    case 'unauthorized':
    case 'forbidden':
      if (!isKnownTrouble(before.circuit, after.circuit, answer.kind)) return null;
      break;
    case 'unavailable':
      if (after.circuit.kind === 'closed') return null;
      break;
    case 'rate_limited':
    case 'quota_exhausted':
      if (after.circuit.kind === 'open') break;
      if (suspicionOf(after.refusals, taskId) === 'convicted') return null;
      return { restMs: restMsOf(after.refusals, taskId) };
  }
  return { restMs: probeRestMsOf(before.circuit, after.circuit, begunMs, nowMs) };
}

/** The task that shows that a key is refused ends with that; those that meet it later wait. */
function isKnownTrouble(before: Circuit, after: Circuit, kind: PushBack): boolean {
  if (before.kind === 'closed' || after.kind === 'closed') return false;
  return before.reason === kind || after.reason === kind;
}

function probeRestMsOf(before: Circuit, after: Circuit, begunMs: number, nowMs: number): number {
  const isProbe = before.kind === 'open' && after.kind === 'open' && mayBeProbe(before, begunMs);
  return isProbe ? closedForMs(after, nowMs) + probeRestMs : 0;
}

/** A probe that ran out of time may have met a service that hangs: it was sent to find that out. */
function excuseOfSilent(circuit: Circuit, begunMs: number, nowMs: number): Excuse | null {
  if (circuit.kind !== 'open' || !isTelling(circuit, begunMs)) return null;
  const nextProbesMs = Math.max(0, circuit.probesAtMs + probePatienceMs - nowMs);
  return { restMs: nextProbesMs + probeRestMs };
}

/** Of two probes the second finds the circuit opened again by the first. */
function mayBeProbe(circuit: Open, begunMs: number): boolean {
  return circuit.trips > 0 || isTelling(circuit, begunMs);
}
