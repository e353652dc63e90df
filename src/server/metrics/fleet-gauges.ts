import { Gauge, type Registry } from 'prom-client';
import { priorities } from '../../domain/priority.js';
import type { Measured } from '../../engine/measurements.js';

/** What is shown of all tasks and workers together. */
export function showFleet(
  registry: Registry,
): (measured: Measured, desiredWorkers: number | null) => void {
  const registers = [registry];
  const gauge = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    new Gauge({ name: `sluice_${name}`, help, labelNames, registers });
  const states = gauge('task_state_tasks', 'Tasks that are in a state now', ['status']);
  const active = gauge('active_tasks', 'Tasks that have not ended');
  const atRisk = gauge('starvation_risk_tasks', 'Tasks that ageing can raise no further');
  const workers = gauge('workers', 'Workers', ['status']);
  const suspended = gauge('workers_suspended', 'Workers that get no tasks since they fail');
  const used = gauge('worker_capacity_used_ratio', 'Share of all places that is in use');
  const desired = gauge('scaling_desired_workers', 'Workers that there should be');

  return (measured, desiredWorkers) => {
    for (const [status, count] of Object.entries(measured.states)) states.set({ status }, count);
    active.set(measured.active);
    atRisk.set(raisedToHigh(measured));
    const { active: working, draining, dead, totalCapacity, usedCapacity } = measured.workers;
    workers.set({ status: 'active' }, working);
    workers.set({ status: 'draining' }, draining);
    workers.set({ status: 'dead' }, dead);
    suspended.set(measured.suspendedWorkers);
    used.set(totalCapacity === 0 ? 0 : usedCapacity / totalCapacity);
    desired.set(desiredWorkers ?? Number.NaN);
  };
}

/** Those that are `high` by their age, and were not submitted so. */
function raisedToHigh({ line }: Measured): number {
  let submittedHigh = 0;
  for (const { depth } of line.queues.values()) submittedHigh += depth[priorities[0]];
  return Math.max(0, line.total.high.count - submittedHigh);
}
