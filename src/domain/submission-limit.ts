import { limitText } from './limit-text.js';

/**
 * How many tasks one API key or one user may submit: at most `rate` in any window of `perSeconds`,
 * all of them at once if they like. A token bucket can't say that: one that holds `rate` tokens
 * passes twice as many in its first window, and one that never does passes them one by one.
 *
 * So tasks are counted in slots, of which a window has fifty, and a slot counts until all of it is
 * older than the window. What was counted is given back late by one slot at most: the bound is
 * exact, and 98 % of the rate can be used.
 */
export interface SubmissionLimit {
  readonly rate: number;
  readonly perSeconds: number;
}

/** Tasks that were let through in one slot of one window. */
export interface SubmissionSlot {
  readonly perSeconds: number;
  readonly slot: number;
  readonly tasks: number;
}

export const slotsInWindow = 50;
/** Of a window of one second, so that slots are whole milliseconds. */
export const slotMsPerSecond = 1_000 / slotsInWindow;

export function slotAt({ perSeconds }: Pick<SubmissionLimit, 'perSeconds'>, atMs: number): number {
  return Math.floor(atMs / (perSeconds * slotMsPerSecond));
}

/** Which limit has no room for one more task, and for how long; of several, the one that lasts. */
export function shortage(
  limits: readonly SubmissionLimit[],
  slots: readonly SubmissionSlot[],
  nowMs: number,
): { readonly limit: SubmissionLimit; readonly waitMs: number } | null {
  const waits = limits.map((limit) => ({ limit, waitMs: roomInMs(limit, slots, nowMs) }));
  const [longest] = waits.sort((one, other) => other.waitMs - one.waitMs);
  return longest === undefined || longest.waitMs === 0 ? null : longest;
}

function roomInMs(limit: SubmissionLimit, slots: readonly SubmissionSlot[], nowMs: number): number {
  const { rate, perSeconds } = limit;
  const own = slots
    .filter((slot) => slot.perSeconds === perSeconds)
    .sort((one, other) => one.slot - other.slot);
  let counted = own.reduce((sum, { tasks }) => sum + tasks, 0);
  let freeMs = nowMs;
  for (const { slot, tasks } of own) {
    if (counted < rate) break;
    counted -= tasks;
    freeMs = (slot + slotsInWindow + 1) * perSeconds * slotMsPerSecond;
  }
  return Math.max(0, freeMs - nowMs);
}

/** Never too early. Later by up to a tenth, so that those who were refused together don't return so. */
export function comeBackSeconds(waitMs: number, random: number): number {
  return Math.max(1, Math.ceil((waitMs * (1 + random / 10)) / 1_000));
}

/** 100 tasks a minute. */
export function submissionLimitText({ rate, perSeconds }: SubmissionLimit): string {
  return limitText({ unit: 'tasks', rate, perSeconds, burst: null });
}

const maxLimits = 4;
const maxRate = 1_000_000_000;
const maxSeconds = 31 * 86_400;
const secondsOf: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

export const submissionLimitsForm =
  `up to ${maxLimits} limits like 100/60s,1000/1h: tasks and a window of at most 31 days, the ` +
  'shortest first, and more tasks in a longer one';

/** Null: it is not of that form. */
export function parseSubmissionLimits(text: string): readonly SubmissionLimit[] | null {
  const limits = text.split(',').map(parseLimit);
  const valid = limits.filter((limit) => limit !== null);
  return valid.length === limits.length && areSubmissionLimits(valid) ? valid : null;
}

function parseLimit(text: string): SubmissionLimit | null {
  const [, rate, count, unit = ''] = /^\s*(\d+)\/(\d*)([smhd])\s*$/.exec(text) ?? [];
  const seconds = secondsOf[unit];
  if (rate === undefined || seconds === undefined) return null;
  return { rate: Number(rate), perSeconds: Number(count === '' ? 1 : count) * seconds };
}

/** By the name of the setting. */
export function submissionLimitConflicts(
  settings: Readonly<Record<string, readonly SubmissionLimit[]>>,
): string[] {
  return Object.entries(settings).flatMap(([name, limits]) =>
    areSubmissionLimits(limits) ? [] : [`${name} must be ${submissionLimitsForm}.`],
  );
}

/** A longer window with fewer tasks would leave the shorter one without a meaning. */
function areSubmissionLimits(limits: readonly SubmissionLimit[]): boolean {
  const isWhole = (value: number, max: number) =>
    Number.isInteger(value) && value >= 1 && value <= max;
  return (
    limits.length <= maxLimits &&
    limits.every(({ rate, perSeconds }, index) => {
      const before = limits[index - 1] ?? { rate: 0, perSeconds: 0 };
      const grows = rate > before.rate && perSeconds > before.perSeconds;
      return isWhole(rate, maxRate) && isWhole(perSeconds, maxSeconds) && grows;
    })
  );
}
