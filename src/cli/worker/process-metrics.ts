import { Counter, Gauge, Registry } from 'prom-client';
import { MergedMetrics } from './merged-metrics.js';
import type { Processes } from './processes.js';

/** What a scrape waits for a process that is busy; one that is not back by then tells its last. */
const patienceMs = 2_000;

/** Merges the metrics of the processes on every scrape, with the parent's own beside them. */
export class ProcessMetrics {
  readonly merged = new MergedMetrics();

  textOf(processes: Processes): () => Promise<string> {
    const own = ownMetrics(processes);
    return async () => {
      const snapshots = await processes.readMetrics(patienceMs);
      return this.merged.text([...snapshots, await own.getMetricsAsJSON()]);
    };
  }
}

function ownMetrics(processes: Processes): Registry {
  const registry = new Registry();
  const registers = [registry];
  new Gauge({
    name: 'sluice_worker_processes',
    help: 'Processes that are ready',
    registers,
    collect() {
      this.set(processes.ready);
    },
  });
  new Counter({
    name: 'sluice_worker_process_restarts_total',
    help: 'Processes that were started again after a crash',
    registers,
    collect() {
      this.reset();
      this.inc(processes.restarts);
    },
  });
  return registry;
}
