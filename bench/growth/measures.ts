import { count, ms } from '../../lab/shared/scenario.js';

interface Measure {
  readonly title: string;
  readonly text: (value: number) => string;
  /** How much of the small case a large one may lose; null: it is told and not judged. */
  readonly goal: 'at least 0.9' | 'at most 1.1' | null;
}

const megabytes = (value: number): string => `${value.toFixed(0)} MB`;
const cpuSeconds = (value: number): string => `${value.toFixed(2)} s`;
const micros = (value: number): string => `${value.toFixed(1)} µs`;

export const measures = {
  perSecond: { title: 'tasks per second', text: count, goal: 'at least 0.9' },
  takeP50: { title: 'take, p50', text: ms, goal: null },
  takeP99: { title: 'take, p99', text: ms, goal: 'at most 1.1' },
  startP50: { title: 'submit to worker, p50', text: ms, goal: null },
  startP99: { title: 'submit to worker, p99', text: ms, goal: 'at most 1.1' },
  memory: { title: 'memory of the process', text: megabytes, goal: 'at most 1.1' },
  ownCpu: { title: 'CPU of the process in a round', text: cpuSeconds, goal: null },
  serviceCpu: { title: 'CPU of Postgres and Redis in a round', text: cpuSeconds, goal: null },
  submitMicros: { title: 'a submit', text: micros, goal: null },
  claimMicros: { title: 'a claim', text: micros, goal: null },
  finishMicros: { title: 'a finish', text: micros, goal: null },
} as const satisfies Readonly<Record<string, Measure>>;

export type MeasureName = keyof typeof measures;

/** What one round of one case measured. */
export type Values = Readonly<Partial<Record<MeasureName, number>>>;
