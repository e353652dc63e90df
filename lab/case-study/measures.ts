import type { Ran } from './work.js';

export interface Quantiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** All times are of the case, in milliseconds; rates are tasks per second. */
export interface Measures {
  readonly tasks: number;
  /** From the first arrival to the last answer. */
  readonly durationMs: number;
  readonly perSecond: number;
  /** Between the answers at 5 % and at 95 %: without how it begins and ends. */
  readonly sustainedPerSecond: number;
  /** From its arrival until the model began. */
  readonly waitMs: Quantiles;
  /** From its arrival until its answer was there. */
  readonly answerMs: Quantiles;
  readonly swing: Swing;
}

/** Answers per second in pieces of two seconds, between the answers at 5 % and at 95 %. */
export interface Swing {
  readonly least: number;
  readonly most: number;
  /** Standard deviation for each one of the mean. */
  readonly deviation: number;
}

const pieceMs = 2_000;
const middle = { from: 0.05, to: 0.95 };

export function measure(rans: readonly Ran[]): Measures {
  const answers = sorted(rans.map(({ answeredMs }) => answeredMs));
  const firstMs = Math.min(...rans.map(({ arrivedMs }) => arrivedMs));
  const durationMs = (answers.at(-1) ?? firstMs) - firstMs;
  const counted = middleOf(answers);
  const countedMs = (counted.at(-1) ?? 0) - (counted[0] ?? 0);
  return {
    tasks: rans.length,
    durationMs,
    perSecond: rate(rans.length, durationMs),
    sustainedPerSecond: rate(counted.length - 1, countedMs),
    waitMs: quantilesOf(rans.map(({ arrivedMs, startedMs }) => startedMs - arrivedMs)),
    answerMs: quantilesOf(rans.map(({ arrivedMs, answeredMs }) => answeredMs - arrivedMs)),
    swing: swingOf(counted),
  };
}

/** Tasks answered per second, in pieces of this length from 0 on. */
export function answersPerSecond(rans: readonly Ran[], ofMs: number): readonly number[] {
  const times = rans.map(({ answeredMs }) => answeredMs);
  return countPieces(times, 0, ofMs, Math.floor(Math.max(0, ...times) / ofMs) + 1).map((count) =>
    rate(count, ofMs),
  );
}

export interface Level {
  readonly atMs: number;
  readonly count: number;
}

/** How many had arrived and were not answered, every so often until the last answer. */
export function backlogOf(rans: readonly Ran[], everyMs: number): readonly Level[] {
  const arrived = sorted(rans.map(({ arrivedMs }) => arrivedMs));
  const answered = sorted(rans.map(({ answeredMs }) => answeredMs));
  const length = Math.ceil((answered.at(-1) ?? 0) / everyMs) + 1;
  let come = 0;
  let gone = 0;
  return Array.from({ length }, (_, piece) => {
    const atMs = piece * everyMs;
    while ((arrived[come] ?? Infinity) <= atMs) come += 1;
    while ((answered[gone] ?? Infinity) <= atMs) gone += 1;
    return { atMs, count: come - gone };
  });
}

export function quantilesOf(values: readonly number[]): Quantiles {
  const ascending = sorted(values);
  const at = (share: number) =>
    ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * share))] ?? 0;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

/** What is too short for two pieces does not swing. */
function swingOf(times: readonly number[]): Swing {
  const [first = 0] = times;
  const pieces = Math.floor(((times.at(-1) ?? first) - first) / pieceMs);
  const rates = countPieces(times, first, pieceMs, pieces).map((count) => rate(count, pieceMs));
  if (rates.length < 2) return { least: 0, most: 0, deviation: 0 };
  const mean = rates.reduce((sum, one) => sum + one, 0) / rates.length;
  const variance = rates.reduce((sum, one) => sum + (one - mean) ** 2, 0) / rates.length;
  return {
    least: Math.min(...rates),
    most: Math.max(...rates),
    deviation: mean === 0 ? 0 : Math.sqrt(variance) / mean,
  };
}

function countPieces(
  times: readonly number[],
  fromMs: number,
  ofMs: number,
  length: number,
): readonly number[] {
  const counts = Array.from({ length }, () => 0);
  for (const time of times) {
    const piece = Math.floor((time - fromMs) / ofMs);
    if (piece >= 0 && piece < length) counts[piece] = (counts[piece] ?? 0) + 1;
  }
  return counts;
}

function middleOf(ascending: readonly number[]): readonly number[] {
  const { length } = ascending;
  return ascending.slice(Math.floor(length * middle.from), Math.ceil(length * middle.to));
}

function rate(count: number, durationMs: number): number {
  return durationMs <= 0 ? 0 : (count * 1_000) / durationMs;
}

function sorted(values: readonly number[]): readonly number[] {
  return values.toSorted((a, b) => a - b);
}
