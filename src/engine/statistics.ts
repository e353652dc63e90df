import { AgeSketch } from '../domain/age-sketch.js';
import { priorities, type Priority } from '../domain/priority.js';
import type { Statistics } from '../protocol/statistics-api.js';
import type { Waiting } from '../ready/ready-queue.js';
import { countWorkers } from '../store/workers.js';
import type { Admission } from './admission.js';
import { approximateNow, instant, type EngineContext } from './context.js';
import type { Counters } from './counters.js';
import type { Line, LineSnapshot } from './line.js';

export async function getStatistics(
  context: EngineContext,
  line: Line,
  counters: Counters,
  admission: Admission,
): Promise<Statistics> {
  const snapshot = await line.snapshot();
  const nowMs = approximateNow(context).getTime();
  const { completed, failed } = counters.lastMinute(nowMs);
  const lastHour = await counters.lastHour(nowMs);
  return {
    queues: Object.fromEntries(
      priorities.map((priority) => [priority, waitingView(snapshot.total[priority])]),
    ) as Statistics['queues'],
    running: snapshot.running,
    workers: await countWorkers(context.db.reads, instant(context)),
    age: ageView(snapshot),
    throughput: {
      completedLastMinute: completed,
      failedLastMinute: failed,
      avgTaskDurationSeconds: counters.averageDurationSeconds(nowMs),
    },
    admission: await admission.standing(),
    recovery: {
      leasesLapsedLastHour: lastHour.lapsed,
      timeoutsLastHour: lastHour.timedOut,
      reofferedLastHour: lastHour.reoffered,
    },
  };
}

function waitingView({ count, oldestAgeMs }: Waiting): Statistics['queues'][Priority] {
  return { depth: count, oldestAgeSeconds: oldestAgeMs === null ? null : oldestAgeMs / 1000 };
}

function ageView({ total, ages }: LineSnapshot): Statistics['age'] {
  const all = new AgeSketch();
  for (const priority of priorities) all.addAll(ages[priority]);
  const oldest = priorities.flatMap((priority) => total[priority].oldestAgeMs ?? []);
  return {
    p50Seconds: all.quantileSeconds(0.5),
    p95Seconds: all.quantileSeconds(0.95),
    oldestSeconds: oldest.length === 0 ? null : Math.max(...oldest) / 1000,
  };
}
