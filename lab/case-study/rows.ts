import { spreadOf } from '../shared/measure.js';
import { count, judged, noted, percent, seconds, type Row } from '../shared/scenario.js';
import { measure, type Quantiles } from './measures.js';
import { drawWork, type Ran, type Work } from './work.js';

const simulatedSeeds = 100;

export function durationOf(rans: readonly Ran[]): number {
  return measure(rans).durationMs;
}

/** What the published case tells of each run. */
export function durationRow(rans: readonly Ran[]): Row {
  const { durationMs, perSecond, sustainedPerSecond, swing } = measure(rans);
  return noted({
    what: 'duration; tasks per second in all, and sustained; how far that swings',
    measured:
      `${seconds(durationMs)}; ${perSecond.toFixed(1)}, ${sustainedPerSecond.toFixed(1)}; ` +
      `${swing.least.toFixed(1)} to ${swing.most.toFixed(1)} (${percent(swing.deviation, 0)})`,
    numbers: { durationMs, perSecond, sustainedPerSecond, swing: swing.deviation },
  });
}

export function timesRow(rans: readonly Ran[]): Row {
  const { waitMs, answerMs } = measure(rans);
  return noted({
    what: 'p50, p95, p99 until the model began; until the answer was there',
    measured: `${quantiles(waitMs)}; ${quantiles(answerMs)}`,
    numbers: {
      waitP50Ms: waitMs.p50,
      waitP95Ms: waitMs.p95,
      waitP99Ms: waitMs.p99,
      answerP50Ms: answerMs.p50,
      answerP95Ms: answerMs.p95,
      answerP99Ms: answerMs.p99,
    },
  });
}

/** No seed is picked for its result. */
export function seedsRow(tasks: number, durationOfWork: (work: readonly Work[]) => number): Row {
  const durations = Array.from({ length: simulatedSeeds }, (_, n) =>
    durationOfWork(drawWork(n + 1, tasks)),
  );
  const { least, median, most } = spreadOf(durations);
  return noted({
    what: `simulated duration with seeds 1 to ${count(simulatedSeeds)}`,
    measured: `${seconds(median)} (${seconds(least)} to ${seconds(most)})`,
    numbers: { leastMs: least, medianMs: median, mostMs: most },
  });
}

/** None in vain. */
export function callsRow(calls: number, tasks: number): Row {
  return judged(
    { what: 'calls that the models had', measured: count(calls), numbers: { calls } },
    count(tasks),
    calls === tasks,
  );
}

function quantiles({ p50, p95, p99 }: Quantiles): string {
  return [p50, p95, p99].map((each) => seconds(each)).join(', ');
}
