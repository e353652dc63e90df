import type { FieldError } from './errors.js';
import type { Cost, QueueLimit, RateLimit } from './queue-settings.js';
import { bucketShape, requestUnit } from './token-bucket.js';

/** What whole numbers in a rate limit may be; the schemas of the wire say the same. */
export const limitBounds = { rate: 1e9, perSeconds: 31_536_000, burst: 1e9, cost: 1e12 } as const;

/** What is wrong with the limits of one queue. Each path is a JSON pointer into its settings. */
export function queueLimitFaults(limits: readonly QueueLimit[]): FieldError[] {
  const seen = new Set<string>();
  return limits.flatMap((limit, index) => {
    const path = `/limits/${String(index)}`;
    const isShared = 'use' in limit;
    const name = isShared ? limit.use : limit.unit;
    const key = `${isShared ? 'use' : 'unit'} ${name}`;
    const isTwice = seen.has(key);
    seen.add(key);
    if (isShared) return isTwice ? [{ path: `${path}/use`, message: usedTwice(name) }] : [];
    const twice = isTwice ? [{ path: `${path}/unit`, message: countedTwice(name) }] : [];
    return [...twice, ...rateLimitFaults(limit, path)];
  });
}

/** `path` is where the limit stands in its request. */
export function rateLimitFaults({ unit, rate, perSeconds, burst }: RateLimit, path = '') {
  const faults = [
    ...wholeFault(`${path}/rate`, rate, limitBounds.rate),
    ...wholeFault(`${path}/per_seconds`, perSeconds, limitBounds.perSeconds),
    ...(burst === null ? [] : wholeFault(`${path}/burst`, burst, limitBounds.burst)),
  ];
  const { capacity } = bucketShape({ unit, rate, perSeconds, burst });
  if (faults.length > 0 || Number.isSafeInteger(capacity)) return faults;
  const field = burst === null ? 'rate' : 'burst';
  return [{ path: `${path}/${field}`, message: tooFine(field, perSeconds) }];
}

/** What is wrong with what a task is said to cost. */
export function costFaults(cost: Cost, path = '/cost'): FieldError[] {
  if (!Object.hasOwn(cost, requestUnit)) return usageFaults(cost, path);
  return [
    { path: `${path}/${requestUnit}`, message: 'is not for a task to say: each costs one request' },
  ];
}

/** What is wrong with what a task is said to have cost. */
export function usageFaults(usage: Cost, path = '/usage'): FieldError[] {
  return Object.entries(usage).flatMap(([unit, count]) =>
    wholeFault(`${path}/${unit}`, count, limitBounds.cost, 0),
  );
}

function wholeFault(path: string, value: number, max: number, min = 1): FieldError[] {
  if (Number.isInteger(value) && value >= min && value <= max) return [];
  return [{ path, message: `must be a whole number from ${String(min)} to ${String(max)}` }];
}

function usedTwice(name: string): string {
  return `is there already: "${name}" counts a task once`;
}

function countedTwice(unit: string): string {
  return `is limited already: a queue has one limit of its own for "${unit}"`;
}

/** Tokens are counted exactly, in parts of a millisecond's gain: so many don't fit into a number. */
function tooFine(field: 'rate' | 'burst', perSeconds: number): string {
  const parts = Math.floor(Number.MAX_SAFE_INTEGER / 1000 / perSeconds);
  const max = field === 'rate' ? parts - 250 : Math.floor(parts / 250);
  return `must be at most ${String(max)} in a window of ${String(perSeconds)} s, to be counted exactly`;
}
