import { count, judged, ms, noted, type Row } from '../shared/scenario.js';
import { namesInRound } from './names.js';
import type { Tally } from './tally.js';

/** In MB. */
export interface Memory {
  /** After a collection, at the end of each quarter of the requests. */
  readonly kept: readonly number[];
  /** Of the process, with all that was not collected yet. */
  readonly peak: number;
}

export function rowsOf(tally: Tally, memory: Memory): Row[] {
  const refused = tally.countWhere((status) => status >= 400 && status < 500);
  const broken = tally.countWhere(
    (status, route) => status >= 500 && route !== 'GET /healthz/progress',
  );
  return [
    noted(row('requests, over so many routes', tally.requests, ` over ${tally.routes.size}`)),
    noted(
      row(
        'answered as asked',
        tally.countWhere((status) => status < 400),
      ),
    ),
    noted(row('refused', refused)),
    judged(row('answered with a 5xx', broken), '0', broken === 0),
    judged(
      row('answers that are not as documented, or tell of internals', tally.faults.length),
      '0',
      tally.faults.length === 0,
    ),
    noted({
      what: 'the slowest answer',
      measured: ms(tally.slowestMs),
      numbers: { ms: tally.slowestMs },
    }),
    keptRow('kept in memory after each quarter', memory.kept, 1),
    noted({
      what: 'memory of the process, at most',
      measured: megabytes(memory.peak),
      numbers: { megabytes: memory.peak },
    }),
  ];
}

function row(what: string, value: number, more = '') {
  return { what, measured: `${count(value)}${more}`, numbers: { value } };
}

export function namesRow(ready: 'memory' | 'redis', kept: readonly number[]): Row {
  const where = ready === 'redis' ? 'with Redis' : 'without Redis';
  return keptRow(`kept after each round of ${count(namesInRound)} new names, ${where}`, kept, 3);
}

const allowedGrowth = 1.1;

function keptRow(what: string, kept: readonly number[], from: number): Row {
  const settled = Math.max(...kept.slice(0, from));
  const last = kept.at(-1) ?? NaN;
  return judged(
    { what, measured: kept.map(megabytes).join(', '), numbers: { megabytes: kept } },
    `growth below ${Math.round((allowedGrowth - 1) * 100)} % from number ${from} on`,
    last <= settled * allowedGrowth,
  );
}

function megabytes(value: number): string {
  return `${value < 100 ? value.toFixed(1) : Math.round(value)} MB`;
}
