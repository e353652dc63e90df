import { attemptErrorCodes, type AttemptError } from './attempt-error.js';
import type { QueueLimit, QueueSettings } from './queue-settings.js';
import { maxRetryAfterSeconds, type Excuse } from './retry-policy.js';
import { bucketShape } from './token-bucket.js';

/** How a service says that it wants no calls for now: a 429, or nobody answers. */
export type PushBack = 'rate_limited' | 'unavailable';

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
  readonly begunMs: number;
  /** Null: it says nothing. */
  readonly answer: Answer | null;
}

/** `streak`: attempts in a row that found nobody there. */
export interface Standing {
  readonly circuit: Circuit;
  readonly streak: number;
}

export const closed: Circuit = { kind: 'closed' };

/** A service that misses a call now and then is not down. */
export const streakToOpen = 5;
/** Probes that nobody has reported for so long came to nothing: others are let go. */
export const probePatienceMs = 30_000;
export const recoveryStepMs = 10_000;

const probes: Readonly<Record<PushBack, number>> = { rate_limited: 1, unavailable: 2 };
const openMs: Readonly<Record<PushBack, { readonly first: number; readonly most: number }>> = {
  rate_limited: { first: 1_000, most: 60_000 },
  unavailable: { first: 30_000, most: 300_000 },
};
/** By step: only each so-manieth call is made. */
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

export function answerOf({ code, retryAfterSeconds = 0 }: AttemptError): Answer | null {
  const retryAfterMs = Math.max(0, Math.min(retryAfterSeconds, maxRetryAfterSeconds)) * 1000;
  if (code === attemptErrorCodes.rateLimited) return { kind: 'rate_limited', retryAfterMs };
  if (code === attemptErrorCodes.unavailable) return { kind: 'unavailable', retryAfterMs };
  return sayNothing.has(code) ? null : { kind: 'answered' };
}

/**
 * After one attempt. The same circuit, as an object: nothing is to be written. Stragglers, which began
 * before it opened or before it began to recover, tell nothing new: except that the service may name a
 * later time.
 */
export function heed(standing: Standing, { begunMs, answer }: Ended, nowMs: number): Standing {
  const { circuit } = standing;
  if (answer === null) return standing;
  if (!isTelling(circuit, begunMs)) {
    return { ...standing, circuit: postponed(circuit, answer, nowMs) };
  }
  if (answer.kind === 'answered') return { circuit: answered(circuit, nowMs), streak: 0 };
  const streak = standing.streak + 1;
  // In recovery, too, a lone miss is no outage: where one call in a hundred fails, it would never end.
  const needed = answer.kind === 'rate_limited' || circuit.kind === 'open' ? 1 : streakToOpen;
  if (streak < needed) return { circuit, streak };
  return { circuit: opened(circuit, answer.kind, answer.retryAfterMs, nowMs), streak: 0 };
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
    return excuseOf(before.circuit, after.circuit, end, nowMs);
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
  return circuit.kind === 'open' ? probes[circuit.reason] : null;
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
  const share = Math.max(1, Math.ceil(circuit.slots / slowdown));
  return {
    ...settings,
    maxConcurrency: Math.min(settings.maxConcurrency ?? share, share),
    limits: settings.limits.map((limit) => slowed(limit, slowdown)),
  };
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
  const { first, most } = openMs[reason];
  const untilMs = Math.ceil(nowMs + Math.max(retryAfterMs, Math.min(first * 2 ** trips, most)));
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
function excuseOf(before: Circuit, after: Circuit, ended: Ended, nowMs: number): Excuse | null {
  const { answer, begunMs } = ended;
  if (answer === null) return excuseOfSilent(before, begunMs, nowMs);
  if (answer.kind === 'answered' || after.kind === 'closed') return null;
  const isProbe = before.kind === 'open' && after.kind === 'open' && mayBeProbe(before, begunMs);
  return { restMs: isProbe ? closedForMs(after, nowMs) + probeRestMs : 0 };
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
