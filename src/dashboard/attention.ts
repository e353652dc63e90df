import type { QueueWire } from '../protocol/queues-schema.js';
import type { AttentionWire, StatisticsWire } from '../protocol/statistics-schema.js';
import { ago, count, duration, percent, plural } from './format.js';
import { href } from './href.js';

export interface Concern {
  readonly severity: 'bad' | 'warn';
  readonly text: string;
  readonly address: string;
}

/** An alert that fires, as the server says it. */
export interface FiringAlert {
  readonly severity: 'critical' | 'warning' | 'info';
  readonly summary: string;
}

export interface Situation {
  readonly alerts: readonly FiringAlert[];
  readonly statistics: StatisticsWire;
  /** Null: not known. */
  readonly attention: AttentionWire | null;
  /** Of the last hour; null: not known. */
  readonly lastHour: {
    readonly completed: number;
    readonly failed: number;
    readonly deadLetters: number;
  } | null;
  readonly nowMs: number;
}

const manyFailures = 0.05;
const fewEnded = 20;
const nearlyFull = 0.8;
/** A list of hundreds says no more than its first lines. */
const maxOfAKind = 5;

/** What needs attention, in words, the worst first. */
export function findConcerns(situation: Situation): readonly Concern[] {
  const all = [
    ...ofAlerts(situation),
    ...ofWorkers(situation),
    ...ofQueues(situation),
    ...ofFailures(situation),
    ...ofLimits(situation),
  ];
  return [...all.filter(isBad), ...all.filter((concern) => !isBad(concern))];
}

function isBad({ severity }: Concern): boolean {
  return severity === 'bad';
}

function ofAlerts({ alerts }: Situation): Concern[] {
  const address = href('alerts');
  const concerns = alerts.map(({ severity, summary: text }): Concern => {
    return { severity: severity === 'critical' ? 'bad' : 'warn', text, address };
  });
  return firstOf(concerns, concerns.length, address, (left) => {
    return `${plural(left, 'more alert')} ${left === 1 ? 'fires' : 'fire'}.`;
  });
}

/** The worst few, and in words how many more there are. */
function firstOf(
  concerns: readonly Concern[],
  total: number,
  address: string,
  more: (left: number) => string,
): Concern[] {
  const worst = [...concerns.filter(isBad), ...concerns.filter((one) => !isBad(one))];
  const shown = worst.slice(0, maxOfAKind);
  const left = total - shown.length;
  return left === 0 ? shown : [...shown, { severity: 'warn', text: more(left), address }];
}

function ofWorkers({ statistics, attention, nowMs }: Situation): Concern[] {
  const address = href('workers');
  const { active, draining } = statistics.workers;
  const waiting = depthOf(statistics);
  const concerns: Concern[] = [];
  if (waiting > 0 && active === 0) {
    const have = draining > 0 ? 'all workers drain' : 'there is no worker';
    concerns.push({
      severity: 'bad',
      text: `${plural(waiting, 'task')} ${waiting === 1 ? 'waits' : 'wait'} and ${have}.`,
      address,
    });
  }
  if (attention === null) return concerns;
  const { items, total_count } = attention.workers;
  const suspended = items.map(({ name, worker_id, benched_until }): Concern => {
    const again =
      benched_until === null ? '' : `; it gets tasks again ${ago(benched_until, nowMs)}`;
    const text = `Worker ${name ?? worker_id} fails where others succeed${again}.`;
    return { severity: 'warn', text, address: href('workers', worker_id) };
  });
  const more = (left: number) =>
    `${plural(left, 'more worker')} ${left === 1 ? 'is' : 'are'} suspended.`;
  return [...concerns, ...firstOf(suspended, total_count, address, more)];
}

function ofQueues({ attention, nowMs }: Situation): Concern[] {
  if (attention === null) return [];
  const { items, total_count } = attention.queues;
  const concerns = items.map((queue) => ofQueue(queue, nowMs));
  return firstOf(concerns, total_count, href('queues'), (left) => {
    return `${plural(left, 'more queue')} ${left === 1 ? 'is' : 'are'} paused, stopped or slow.`;
  });
}

/** Why the server lists the queue. */
function ofQueue({ name, live, paused, in_force }: QueueWire, nowMs: number): Concern {
  const address = href('queues', name);
  const waiting = live.depth.high + live.depth.medium + live.depth.low + live.backlog;
  const concern = (severity: Concern['severity'], text: string) => ({ severity, text, address });
  if (live.circuit === 'open') {
    const until =
      live.paused_until === null ? '' : `; it is tried again ${ago(live.paused_until, nowMs)}`;
    const why = live.paused_why === null ? '' : `: ${live.paused_why}`;
    return concern('bad', `${name} is stopped by its circuit${why}${until}.`);
  }
  if (paused && waiting > 0) {
    return concern(
      'warn',
      `${name} is paused and ${plural(waiting, 'task')} ${waiting === 1 ? 'waits' : 'wait'} in it.`,
    );
  }
  if (!in_force) {
    return concern(
      'bad',
      `The newest settings of ${name} are not in force yet; nothing of it starts.`,
    );
  }
  if (paused) return concern('warn', `${name} is paused; nothing waits in it.`);
  if (live.circuit === 'half_open') {
    return concern('warn', `${name} recovers: its service pushed back a while ago.`);
  }
  const oldest = duration(live.oldest_age_seconds ?? 0);
  return concern('warn', `The oldest task of ${name} has waited for ${oldest}.`);
}

function ofFailures({ lastHour }: Situation): Concern[] {
  if (lastHour === null) return [];
  const { completed, failed, deadLetters } = lastHour;
  const concerns: Concern[] = [];
  if (deadLetters > 0) {
    const text = `${plural(deadLetters, 'task')} ended as ${deadLetters === 1 ? 'a dead letter' : 'dead letters'} in the last hour.`;
    concerns.push({ severity: 'warn', text, address: href('dead-letters') });
  }
  const ended = completed + failed;
  if (ended >= fewEnded && failed / ended > manyFailures) {
    const text = `${percent(failed / ended)} of the attempts of the last hour failed (${count(failed)} of ${count(ended)}).`;
    concerns.push({ severity: 'bad', text, address: `${href('tasks')}?status=dead_letter` });
  }
  return concerns;
}

function ofLimits({ statistics }: Situation): Concern[] {
  const { active, max_active } = statistics.admission;
  if (active < max_active * nearlyFull) return [];
  const text = `${count(active)} tasks are active; from ${count(max_active)} on submits are refused.`;
  return [{ severity: active >= max_active ? 'bad' : 'warn', text, address: href('queues') }];
}

export function depthOf({ queues }: StatisticsWire): number {
  return queues.high.depth + queues.medium.depth + queues.low.depth;
}
