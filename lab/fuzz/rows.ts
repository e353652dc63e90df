import { count, judged, ms, noted, type Row } from '../shared/scenario.js';
import type { Tally } from './tally.js';

/** Of the server's memory, in MB, after every batch. */
export interface Memory {
  readonly samples: readonly number[];
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
    memoryRow(memory),
  ];
}

function row(what: string, value: number, more = '') {
  return { what, measured: `${count(value)}${more}`, numbers: { value } };
}

const allowedGrowth = 1.3;

/** The heap settles first; from the second quarter on it should stay where it is. */
function memoryRow({ samples, peak }: Memory): Row {
  const quarter = Math.max(1, Math.floor(samples.length / 4));
  const before = median(samples.slice(quarter, 2 * quarter));
  const after = median(samples.slice(-quarter));
  return judged(
    {
      what: 'memory of the server: in the second quarter, in the last, at most',
      measured: [before, after, peak].map((value) => `${Math.round(value)} MB`).join(', '),
      numbers: { before, after, peak },
    },
    `growth below ${Math.round((allowedGrowth - 1) * 100)} %`,
    after <= before * allowedGrowth,
  );
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}
