import { deliveryDelays, timesOf, type Claim } from '../../lab/limits/claims.js';
import { jitterOf, mostInWindow, shareUsed, spreadOf } from '../../lab/shared/measure.js';
import { count, judged, ms, noted, percent, type Row } from '../../lab/shared/scenario.js';
import { allowed, type Arrangement, type LimitedQueue, type Observed } from './observe.js';

const leastShare = 0.995;
const warmUpMs = 1_000;

/** One queue: its claims, its calls at the service, and how much of the rate it used. */
export function rowsOf(
  { title, faults }: Arrangement,
  { name, perMinute }: LimitedQueue,
  observed: Observed,
): Row[] {
  const { windowSeconds, claims, calls } = observed;
  const what = `${count(perMinute)}/min, ${title}`;
  const limit = allowed(perMinute, windowSeconds);
  const claimed = timesOf(claims, name);
  const received = calls.filter(({ queue }) => queue === name).map(({ receivedAt }) => receivedAt);
  const share = shareUsed(claimed, perMinute / 60_000, warmUpMs);
  const used = {
    what: `${what}: share used`,
    measured: percent(share, 2),
    numbers: { share, claims: claimed.length },
  };
  return [
    windowRow(`${what}: most claims`, claimed, limit, windowSeconds, claimJitter(observed)),
    windowRow(`${what}: most calls`, received, limit, windowSeconds, callJitter(observed)),
    faults ? noted(used) : judged(used, `≥ ${percent(leastShare)}`, share >= leastShare),
  ];
}

function windowRow(
  what: string,
  times: readonly number[],
  limit: number,
  windowSeconds: number,
  jitterMs: number,
): Row {
  const windowMs = windowSeconds * 1000 - jitterMs;
  const most = mostInWindow(times, windowMs);
  const inWhole = mostInWindow(times, windowSeconds * 1000);
  return judged(
    {
      what: `${what} in ${windowText(windowMs)}`,
      measured: `${count(most)}; in the whole ${windowSeconds} s ${count(inWhole)}`,
      numbers: { most, inWhole, windowMs, limit },
    },
    `≤ ${count(limit)}`,
    most <= limit,
  );
}

/** Many queues with one rate: the one that comes nearest to its limit, and the one that used least. */
export function extremeRows(
  what: string,
  queues: readonly LimitedQueue[],
  observed: Observed,
  isShareJudged: boolean,
): Row[] {
  const { windowSeconds, claims } = observed;
  const perMinute = queues[0]?.perMinute ?? Number.NaN;
  const limit = allowed(perMinute, windowSeconds);
  const windowMs = windowSeconds * 1000 - claimJitter(observed);
  const byQueue = timesByQueue(claims);
  const times = queues.map(({ name }) => byQueue.get(name) ?? []);
  const most = Math.max(...times.map((one) => mostInWindow(one, windowMs)));
  const least = Math.min(...times.map((one) => shareUsed(one, perMinute / 60_000, warmUpMs)));
  const used = {
    what: `${what}: least share used`,
    measured: percent(least, 2),
    numbers: { least },
  };
  return [
    judged(
      {
        what: `${what}: most claims of any queue in ${windowText(windowMs)}`,
        measured: count(most),
        numbers: { most, windowMs, limit },
      },
      `≤ ${count(limit)}`,
      most <= limit,
    ),
    isShareJudged ? judged(used, `≥ ${percent(leastShare)}`, least >= leastShare) : noted(used),
  ];
}

/** From the grant to the claim; see `Probe`. */
function claimJitter({ probe }: Observed): number {
  return probe.most - probe.least;
}

/** From the grant to the call: what the claim may be late by, and the way from there. */
function callJitter(observed: Observed): number {
  const { claims, calls } = observed;
  return claimJitter(observed) + jitterOf(deliveryDelays(claims, calls));
}

export function jitterRow(title: string, observed: Observed): Row {
  const { median, p99, most } = spreadOf(deliveryDelays(observed.claims, observed.calls));
  const { probe } = observed;
  return noted({
    what: `${title}: from claim to call; a look at Postgres through the server`,
    measured:
      `median ${ms(median)}, p99 ${ms(p99)}, most ${ms(most)}; ` +
      `median ${ms(probe.median)}, most ${ms(probe.most)}`,
    numbers: { median, p99, most, probeMedian: probe.median, probeMost: probe.most },
  });
}

function timesByQueue(claims: readonly Claim[]): ReadonlyMap<string, readonly number[]> {
  const times = new Map<string, number[]>();
  for (const { queue, at } of claims) {
    const known = times.get(queue);
    if (known === undefined) times.set(queue, [at]);
    else known.push(at);
  }
  return times;
}

const windowText = (windowMs: number): string => `${(windowMs / 1000).toFixed(3)} s`;
