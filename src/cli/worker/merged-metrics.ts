import { AggregatorRegistry } from 'prom-client';
import type { MetricsSnapshot } from '../../worker/metrics.js';

/** The metrics of several processes as those of one, whose counters never fall. */
export class MergedMetrics {
  #departed: Promise<MetricsSnapshot> = Promise.resolve([]);

  /** Keeps what a process that is gone had counted: a sum that falls looks like a restart. */
  depart(last: MetricsSnapshot): void {
    const counted = last.filter(({ type }) => isCumulative(type));
    this.#departed = this.#departed.then((before) => merge([before, counted]).getMetricsAsJSON());
  }

  async text(snapshots: readonly MetricsSnapshot[]): Promise<string> {
    return merge([...snapshots, await this.#departed]).metrics();
  }
}

function merge(snapshots: readonly MetricsSnapshot[]) {
  return AggregatorRegistry.aggregate([...snapshots]);
}

/** Declared as a number, but it is a word. */
function isCumulative(type: unknown): boolean {
  return type === 'counter' || type === 'histogram';
}
