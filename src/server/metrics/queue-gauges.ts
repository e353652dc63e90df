import { Gauge, type Registry } from 'prom-client';
import { otherNames } from '../../domain/other-names.js';
import { priorities, type Priority } from '../../domain/priority.js';
import type { LineSnapshot } from '../../engine/line.js';
import type { MeasuredQueue } from '../../engine/measurements.js';

const circuitValues = { closed: 0, half_open: 1, open: 2 };

/** What is shown of each queue that has a name in the metrics; the others are summed up. */
export function showQueues(
  registry: Registry,
): (
  line: LineSnapshot,
  names: ReadonlySet<string>,
  queues: ReadonlyMap<string, MeasuredQueue>,
) => void {
  const registers = [registry];
  const gauge = <Label extends string>(name: string, help: string, labelNames: Label[]) =>
    new Gauge({ name: `sluice_${name}`, help, labelNames, registers });
  const depth = gauge('queue_depth', 'Tasks that could be taken', ['queue', 'priority']);
  const running = gauge('queue_running_tasks', 'Tasks that run', ['queue']);
  const tokens = gauge('limit_tokens', 'Tokens left of a limit', ['queue', 'unit']);
  const circuit = gauge('circuit_state', '0 closed, 1 half open, 2 open', ['queue']);

  return (line, names, queues) => {
    for (const one of [depth, running, tokens, circuit]) one.reset();
    for (const [queue, { counts, runs }] of summedUp(line, names)) {
      for (const priority of priorities) depth.set({ queue, priority }, counts[priority]);
      running.set({ queue }, runs);
    }
    for (const [queue, measured] of queues) {
      circuit.set({ queue }, circuitValues[measured.circuit]);
      for (const [unit, left] of Object.entries(measured.tokens)) tokens.set({ queue, unit }, left);
    }
  };
}

interface Shown {
  readonly counts: Record<Priority, number>;
  runs: number;
}

/** By label. As plain numbers: to set a gauge for each of 10,000 queues takes 50 ms. */
function summedUp(line: LineSnapshot, names: ReadonlySet<string>): Map<string, Shown> {
  const shown = new Map<string, Shown>();
  const shownAs = (label: string): Shown => {
    const known = shown.get(label) ?? { counts: { high: 0, medium: 0, low: 0 }, runs: 0 };
    shown.set(label, known);
    return known;
  };
  for (const name of names) shownAs(name);
  for (const [queue, { waiting, running }] of line.queues) {
    const sum = shownAs(names.has(queue) ? queue : otherNames);
    for (const priority of priorities) sum.counts[priority] += waiting[priority].count;
    sum.runs += running;
  }
  return shown;
}
