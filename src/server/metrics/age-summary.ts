import { Summary, type Registry } from 'prom-client';
import type { AgeSketch } from '../../domain/age-sketch.js';
import { priorities, type Priority } from '../../domain/priority.js';
import type { LineSnapshot } from '../../engine/line.js';

const quantiles = [0.5, 0.95] as const;
const name = 'sluice_queue_age_seconds';

type Shown = Pick<LineSnapshot, 'ages' | 'total'>;

/** How long the tasks that wait have waited: of those there are now, not of all that there ever were. */
export class AgeSummary extends Summary<'priority'> {
  #shown: Shown | null = null;

  constructor(registry: Registry) {
    const help = 'How long the tasks that wait now have waited, by effective priority';
    super({ name, help, labelNames: ['priority'], registers: [registry] });
  }

  show(shown: Shown): void {
    this.#shown = shown;
  }

  override async get(): ReturnType<Summary<'priority'>['get']> {
    const shown = this.#shown;
    const values = shown === null ? [] : priorities.flatMap((one) => valuesOf(one, shown));
    return { ...(await super.get()), values };
  }
}

interface Value {
  readonly labels: { readonly priority: Priority; readonly quantile?: number };
  readonly value: number;
  readonly metricName?: string;
}

function valuesOf(priority: Priority, { ages, total }: Shown): Value[] {
  const sketch: AgeSketch = ages[priority];
  const { count, oldestAgeMs } = total[priority];
  const oldest = (oldestAgeMs ?? 0) / 1000;
  return [
    ...quantiles.map((quantile) => {
      // It is rounded, and nothing is older than the oldest.
      const value = Math.min(oldest, sketch.quantileSeconds(quantile) ?? 0);
      return { labels: { priority, quantile }, value };
    }),
    { labels: { priority, quantile: 1 }, value: oldest },
    { metricName: `${name}_sum`, labels: { priority }, value: sketch.sumSeconds },
    { metricName: `${name}_count`, labels: { priority }, value: count },
  ];
}
