export interface Measure {
  readonly title: string;
  readonly unit: string;
  readonly better: 'more' | 'less';
  readonly digits: number;
}

/** Used: by the processes of the contender itself, and by Postgres and Redis beside them. */
export const measures = {
  bulk: { title: 'bulk enqueue', unit: 'tasks/s', better: 'more', digits: 0 },
  process: { title: 'process', unit: 'tasks/s', better: 'more', digits: 0 },
  submit: { title: 'single submits, 50 at once', unit: 'tasks/s', better: 'more', digits: 0 },
  startP50: { title: 'submit to start, p50', unit: 'ms', better: 'less', digits: 2 },
  startP99: { title: 'submit to start, p99', unit: 'ms', better: 'less', digits: 2 },
  ownCpu: { title: 'own CPU', unit: 's per 100,000', better: 'less', digits: 2 },
  serviceCpu: { title: 'Postgres and Redis CPU', unit: 's per 100,000', better: 'less', digits: 2 },
  ownMemory: { title: 'own memory, peak', unit: 'MB', better: 'less', digits: 0 },
  serviceMemory: {
    title: 'Postgres and Redis memory, peak',
    unit: 'MB',
    better: 'less',
    digits: 0,
  },
} as const satisfies Readonly<Record<string, Measure>>;

export type MeasureName = keyof typeof measures;

export const measureNames = Object.keys(measures) as MeasureName[];

/** What one contender did in one round. Not a number: this machine does not tell. */
export type Values = Readonly<Record<MeasureName, number>>;

export interface Run {
  readonly round: number;
  readonly contender: string;
  readonly values: Values;
  /** Tasks that began more than once. */
  readonly twice: number;
}

export function show(name: MeasureName, value: number): string {
  if (!Number.isFinite(value)) return '–';
  const { digits } = measures[name];
  return value.toLocaleString('en', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}
