import { queueFromWire, queueToWire } from './queues-wire.js';
import type { Attention, Statistics } from './statistics-api.js';
import type { AttentionWire, StatisticsWire } from './statistics-schema.js';
import { workerFromWire, workerToWire } from './workers-wire.js';

type Depth = Statistics['queues']['high'];
type DepthWire = StatisticsWire['queues']['high'];

export function statisticsToWire(statistics: Statistics): StatisticsWire {
  const { queues, running, workers, age, throughput, admission, recovery } = statistics;
  return {
    queues: {
      high: depthToWire(queues.high),
      medium: depthToWire(queues.medium),
      low: depthToWire(queues.low),
    },
    running,
    workers: {
      active: workers.active,
      draining: workers.draining,
      dead: workers.dead,
      total_capacity: workers.totalCapacity,
      used_capacity: workers.usedCapacity,
    },
    age: {
      p50_seconds: age.p50Seconds,
      p95_seconds: age.p95Seconds,
      oldest_seconds: age.oldestSeconds,
    },
    throughput: {
      completed_last_minute: throughput.completedLastMinute,
      failed_last_minute: throughput.failedLastMinute,
      avg_task_duration_seconds: throughput.avgTaskDurationSeconds,
    },
    admission: { active: admission.active, max_active: admission.maxActive },
    recovery: {
      leases_lapsed_last_hour: recovery.leasesLapsedLastHour,
      timeouts_last_hour: recovery.timeoutsLastHour,
      reoffered_last_hour: recovery.reofferedLastHour,
    },
  };
}

export function statisticsFromWire(wire: StatisticsWire): Statistics {
  const { queues, running, age, throughput, admission, recovery } = wire;
  const { total_capacity: totalCapacity, used_capacity: usedCapacity, ...workers } = wire.workers;
  return {
    queues: {
      high: depthFromWire(queues.high),
      medium: depthFromWire(queues.medium),
      low: depthFromWire(queues.low),
    },
    running,
    workers: { ...workers, totalCapacity, usedCapacity },
    age: {
      p50Seconds: age.p50_seconds,
      p95Seconds: age.p95_seconds,
      oldestSeconds: age.oldest_seconds,
    },
    throughput: {
      completedLastMinute: throughput.completed_last_minute,
      failedLastMinute: throughput.failed_last_minute,
      avgTaskDurationSeconds: throughput.avg_task_duration_seconds,
    },
    admission: { active: admission.active, maxActive: admission.max_active },
    recovery: {
      leasesLapsedLastHour: recovery.leases_lapsed_last_hour,
      timeoutsLastHour: recovery.timeouts_last_hour,
      reofferedLastHour: recovery.reoffered_last_hour,
    },
  };
}

export function attentionToWire({ queues, workers }: Attention): AttentionWire {
  return {
    queues: { items: queues.items.map(queueToWire), total_count: queues.totalCount },
    workers: { items: workers.items.map(workerToWire), total_count: workers.totalCount },
  };
}

export function attentionFromWire({ queues, workers }: AttentionWire): Attention {
  return {
    queues: { items: queues.items.map(queueFromWire), totalCount: queues.total_count },
    workers: { items: workers.items.map(workerFromWire), totalCount: workers.total_count },
  };
}

function depthToWire(depth: Depth): DepthWire {
  return { depth: depth.depth, oldest_age_seconds: depth.oldestAgeSeconds };
}

function depthFromWire(wire: DepthWire): Depth {
  return { depth: wire.depth, oldestAgeSeconds: wire.oldest_age_seconds };
}
