import { existsSync, readdirSync } from 'node:fs';
import { median } from '../../lab/shared/measure.js';
import { judged, withSpread, type Row } from '../../lab/shared/scenario.js';

/** What was seen at one moment of a soak. */
export interface Sample {
  readonly serverMegabytes: number;
  readonly workerMegabytes: number;
  readonly postgresMegabytes: number;
  readonly serverFiles: number;
  readonly workerFiles: number;
  readonly connections: number;
  readonly deadTuples: number;
  readonly liveTablesMegabytes: number;
}

const kinds = {
  serverMegabytes: { title: 'memory of the server', text: megabytes },
  workerMegabytes: { title: 'memory of the workers', text: megabytes },
  postgresMegabytes: { title: 'memory of Postgres', text: megabytes },
  serverFiles: { title: 'open files of the server', text: whole },
  workerFiles: { title: 'open files of the workers', text: whole },
  connections: { title: 'connections to Postgres', text: whole },
  deadTuples: { title: 'dead tuples', text: whole },
  liveTablesMegabytes: { title: 'tables of living tasks', text: tenths },
} as const satisfies Readonly<
  Record<keyof Sample, { title: string; text: (value: number) => string }>
>;

const atMost = 1.1;
/** Caches fill and heaps find their size. */
const warmUpShare = 0.1;

/** The last third against the first one, after a warm-up. */
export function soakRows(samples: readonly Sample[]): Row[] {
  const counted = samples.slice(Math.floor(samples.length * warmUpShare));
  const third = Math.ceil(counted.length / 3);
  const [early, late] = [counted.slice(0, third), counted.slice(-third)];
  return (Object.keys(kinds) as (keyof Sample)[]).map((kind) => {
    const [before, after] = [early, late].map((part) => part.map((sample) => sample[kind])) as [
      number[],
      number[],
    ];
    const ratio = ratioOf(median(after), median(before));
    const { title, text } = kinds[kind];
    return judged(
      {
        what: `${title}: last third against the first`,
        measured: `${withSpread(after, text)} against ${withSpread(before, text)}; ratio ${ratio.toFixed(2)}`,
        numbers: { ratio, samples: samples.map((sample) => sample[kind]) },
      },
      `≤ ${atMost}`,
      ratio <= atMost,
    );
  });
}

/** Nothing and nothing are the same. */
function ratioOf(after: number, before: number): number {
  return after === before ? 1 : after / before;
}

/** Not a number: this machine does not tell. */
export function openFiles(pids: readonly number[]): number {
  if (!existsSync('/proc/self/fd')) return Number.NaN;
  return pids.reduce((sum, pid) => sum + readdirSync(`/proc/${pid}/fd`).length, 0);
}

function megabytes(value: number): string {
  return `${value.toFixed(0)} MB`;
}

function tenths(value: number): string {
  return `${value.toFixed(1)} MB`;
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en');
}
