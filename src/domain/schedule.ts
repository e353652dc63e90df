import type { FieldError } from './errors.js';

const dayMs = 24 * 3_600_000;

/** When a task may first run: one of both, or neither. */
export interface Schedule {
  readonly runAt?: Date;
  readonly delaySeconds?: number;
}

/**
 * What is wrong with when a task is to run. The bound is there for whoever writes years by mistake, or
 * milliseconds as seconds: such a task would keep its parameters until then.
 */
export function scheduleFaults(
  { runAt, delaySeconds }: Schedule,
  nowMs: number,
  maxScheduleDays: number,
): FieldError[] {
  const most = `at most ${maxScheduleDays} days from now (maxScheduleDays)`;
  const maxMs = maxScheduleDays * dayMs;
  // Negated, so that an invalid date is a fault too.
  if (runAt !== undefined && !(runAt.getTime() <= nowMs + maxMs)) {
    return [{ path: '/run_at', message: `must be ${most}` }];
  }
  if (delaySeconds !== undefined && !(delaySeconds * 1000 <= maxMs)) {
    return [{ path: '/delay_seconds', message: `must be ${most}` }];
  }
  return [];
}
