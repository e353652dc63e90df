/** What of a server's settings can contradict something. */
export interface ServerTimes {
  readonly heartbeatIntervalMs: number;
  readonly leaseMs: number;
  readonly unstartedMs: number;
  readonly timeoutGraceMs: number;
  readonly pollWaitSeconds: number;
  readonly sweepIntervalMs: number;
  readonly discoverIntervalMs: number;
  readonly servingLeaseMs: number;
  readonly servingRenewMs: number;
  readonly benchMs: number;
  readonly retainEndedDays: number;
  readonly retainDeadLettersDays: number;
  readonly retentionIntervalMs: number;
  readonly upkeepIntervalMs: number;
  readonly rereadIntervalMs: number;
  readonly maxScheduleDays: number;
}

type Name<Values> = keyof Values & string;
type Times<Values> = { readonly [Each in Name<Values>]?: number | undefined };

interface Rule<Values> {
  readonly one: Name<Values>;
  readonly mustBe: string;
  readonly other: Name<Values> | readonly [value: number, meaning: string];
  readonly holds: (one: number, other: number) => boolean;
  /** What would go wrong. */
  readonly because: string;
}

/** The longest that a call may wait: a proxy would cut what waits longer. */
const longestWaitSeconds = 60;
/** For so long the same idempotency key means the same task. */
const idempotencyKeyDays = 1;
const mostDays = 36_500;

const serverRules: readonly Rule<ServerTimes>[] = [
  {
    one: 'leaseMs',
    mustBe: 'more than twice',
    other: 'heartbeatIntervalMs',
    holds: (lease, heartbeat) => lease > 2 * heartbeat,
    because: 'one heartbeat that is lost would cost a healthy worker its tasks',
  },
  {
    one: 'servingLeaseMs',
    mustBe: 'more than twice',
    other: 'servingRenewMs',
    holds: (lease, renew) => lease > 2 * renew,
    because: 'one renewal that is late would hand the turn to another server',
  },
  {
    one: 'sweepIntervalMs',
    mustBe: 'at most',
    other: 'leaseMs',
    holds: (sweep, lease) => sweep <= lease,
    because: 'a worker that died would be noticed late by more than its lease',
  },
  {
    one: 'unstartedMs',
    mustBe: 'more than',
    other: 'heartbeatIntervalMs',
    holds: (unstarted, heartbeat) => unstarted > heartbeat,
    because: 'a task would be taken back before its worker could name it once',
  },
  {
    one: 'pollWaitSeconds',
    mustBe: 'at most',
    other: [longestWaitSeconds, 'the seconds that a call may wait'],
    holds: (wait, longest) => wait <= longest,
    because: 'every poll would be cut short',
  },
  {
    one: 'maxScheduleDays',
    mustBe: 'at most',
    other: [3_650, 'the days that delay_seconds can say'],
    holds: (days, longest) => days <= longest,
    because: 'a task that is scheduled keeps its parameters until then',
  },
];

/** Of what is given; what is not given contradicts nothing. */
export function serverConflicts(times: Partial<ServerTimes>): string[] {
  const { retainEndedDays, retainDeadLettersDays, ...others } = times;
  return [
    ...notPositive(others, ['timeoutGraceMs']),
    ...broken(times, serverRules),
    ...tooFewDays({ retainEndedDays, retainDeadLettersDays }),
  ];
}

/** The same as for `unstartedMs`, by the name that the settings of a server have for it. */
export function assignmentConflicts(
  assignmentTimeoutMs: number | null,
  heartbeatIntervalMs: number,
): string[] {
  if (assignmentTimeoutMs === null || assignmentTimeoutMs > heartbeatIntervalMs) return [];
  return [
    `assignmentTimeoutMs (${assignmentTimeoutMs}) must be more than heartbeatIntervalMs ` +
      `(${heartbeatIntervalMs}): a task would be taken back before its worker could name it once.`,
  ];
}

function tooFewDays(kept: Readonly<Record<string, number | undefined>>): string[] {
  const isFine = (days: number) =>
    Number.isInteger(days) && days >= idempotencyKeyDays && days <= mostDays;
  return Object.entries(kept).flatMap(([name, days]) => {
    if (days === undefined || isFine(days)) return [];
    return [
      `${name} must be a whole number of days from ${idempotencyKeyDays}, for which an idempotency ` +
        `key names its task, to ${mostDays}, not ${days}.`,
    ];
  });
}

export interface WorkerTimes {
  readonly drainTimeoutMs: number;
  readonly maxIdleMs: number;
  readonly maxLifetimeMs: number;
}

const workerRules: readonly Rule<WorkerTimes>[] = [
  {
    one: 'maxIdleMs',
    mustBe: 'less than',
    other: 'maxLifetimeMs',
    holds: (idle, lifetime) => idle < lifetime,
    because: 'it would be too old before it could be idle for so long',
  },
];

export function workerConflicts(times: Times<WorkerTimes>): string[] {
  return [...notPositive(times, ['drainTimeoutMs']), ...broken(times, workerRules)];
}

/** All of them in one message. */
export function refuseConflicts(conflicts: readonly string[]): void {
  if (conflicts.length > 0) throw new RangeError(conflicts.join('\n'));
}

function broken<Values>(times: Times<Values>, rules: readonly Rule<Values>[]): string[] {
  return rules.flatMap(({ one, mustBe, other, holds, because }) => {
    const value = times[one];
    const limit = typeof other === 'string' ? times[other] : other[0];
    if (value === undefined || limit === undefined || holds(value, limit)) return [];
    const compared = typeof other === 'string' ? `${other} (${limit})` : `${limit}, ${other[1]}`;
    return [`${one} (${value}) must be ${mustBe} ${compared}: ${because}.`];
  });
}

/** `mayBeZero`: those that may also be nothing at all. */
function notPositive<Values>(times: Times<Values>, mayBeZero: readonly Name<Values>[]): string[] {
  return Object.entries<number | undefined>(times).flatMap(([name, value]) => {
    const least = mayBeZero.some((one) => one === name) ? 0 : Number.MIN_VALUE;
    if (value === undefined || value >= least) return [];
    return [`${name} (${value}) must be ${least === 0 ? '0 or more' : 'more than 0'}.`];
  });
}
