import { priorities, type Priority } from '../domain/priority.js';
import type { Statistics } from '../protocol/statistics-api.js';
import { countWorkers } from '../store/workers.js';
import type { Admission } from './admission.js';
import { approximateNow, instant, type EngineContext } from './context.js';
import type { Line, LineCount } from './line.js';
import type { Counters } from './counters.js';

export async function getStatistics(
  context: EngineContext,
  line: Line,
  counters: Counters,
  admission: Admission,
): Promise<Statistics> {
  const counts = await line.counts();
  const nowMs = approximateNow(context).getTime();
  const { completed, failed } = counters.lastMinute(nowMs);
  const lastHour = await counters.lastHour(nowMs);
  const byPriority = (priority: Priority) => {
    const rows = counts.filter((count) => count.effectivePriority === priority);
    return { depth: total(rows), oldestAgeSeconds: oldestSeconds(rows, nowMs) };
  };
  return {
    queues: Object.fromEntries(
      priorities.map((priority) => [priority, byPriority(priority)]),
    ) as Statistics['queues'],
    workers: await countWorkers(context.db.reads, instant(context)),
    age: {
      ...(await line.ages()),
      oldestSeconds: oldestSeconds(counts, nowMs),
    },
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

function total(rows: readonly LineCount[]): number {
  return rows.reduce((sum, { count }) => sum + count, 0);
}

function oldestSeconds(rows: readonly LineCount[], nowMs: number): number | null {
  if (rows.length === 0) return null;
  const oldestMs = Math.min(...rows.map(({ oldestEligibleAt }) => oldestEligibleAt.getTime()));
  return Math.max(0, (nowMs - oldestMs) / 1000);
}
