import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { attemptErrorCodes } from '../domain/attempt-error.js';
import { SluiceError } from '../domain/errors.js';
import { instantOf } from '../domain/ids.js';
import { priorities } from '../domain/priority.js';
import { hasEnded } from '../domain/task-state.js';
import type { SluiceApi } from '../protocol/api.js';
import type { TaskEvent } from '../protocol/events.js';
import type { QueueView } from '../protocol/queues-api.js';
import type { Statistics } from '../protocol/statistics-api.js';
import type { EventSource, Metrics } from './ports.js';

type Counted = Pick<SluiceApi, 'getStatistics' | 'listQueues' | 'getScaling'>;

/** Labels are bounded: codes of users' own are told as `other`, queues beyond these not at all. */
const maxQueues = 1_000;
/** Pairs of a queue and a task type that tasks are counted by; tasks of all further ones count as `other`. */
const maxPairs = 100;
const knownReasons: ReadonlySet<string> = new Set(Object.values(attemptErrorCodes));
const waitBuckets = [0.005, 0.02, 0.1, 0.5, 1, 5, 15, 60, 300, 600, 1_200, 1_800, 3_600];
const durationBuckets = [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600];

/** Counters are fed by events; gauges are read when they are scraped. */
export function createMetrics(
  api: Counted,
  events: Pick<EventSource, 'subscribe'>,
  refused: () => Readonly<Record<string, number>> = () => ({}),
): Metrics {
  const registry = new Registry();
  const transitions = countTransitions(registry);
  events.subscribe(transitions.note);
  countRefusals(registry, refused);
  const show = showGauges(registry);
  return {
    contentType: registry.contentType,
    text: async () => {
      transitions.tell();
      show(await api.getStatistics(), await listQueues(api), await findDesired(api));
      return registry.metrics();
    },
  };
}

/** Null where nobody knows: this server stands by. */
async function findDesired(api: Counted): Promise<number | null> {
  try {
    return (await api.getScaling()).desired;
  } catch (error) {
    if (error instanceof SluiceError) return null;
    throw error;
  }
}

async function listQueues(api: Counted): Promise<QueueView[]> {
  const queues: QueueView[] = [];
  let cursor: string | null = null;
  do {
    const page = await api.listQueues({ limit: maxQueues, ...(cursor === null ? {} : { cursor }) });
    queues.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor !== null && queues.length < maxQueues);
  return queues.slice(0, maxQueues);
}

interface Transitions {
  readonly note: (event: TaskEvent) => void;
  /** What every task does is counted here, and told when somebody asks: to tell costs ten times as much. */
  readonly tell: () => void;
}

function countTransitions(registry: Registry): Transitions {
  const registers = [registry];
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    new Counter({ name: `sluice_${name}`, help, labelNames, registers });

  const tasks = counter('tasks_total', 'Tasks that came into a state', [
    'status',
    'queue',
    'task_type',
  ]);
  const moves = counter('task_state_transitions_total', 'Transitions', ['from', 'to']);
  const retries = counter('task_retries_total', 'Attempts that cost a retry', [
    'priority',
    'reason',
  ]);
  const failed = counter('tasks_failed_total', 'Tasks that ended badly', ['priority', 'reason']);
  const deadLetters = counter('tasks_dlq_total', 'Tasks that became dead letters', ['reason']);
  const promoted = counter('tasks_promoted_total', 'Tasks that were aged up when taken', [
    'from',
    'to',
  ]);
  const lapsed = counter('leases_lapsed_total', 'Attempts whose worker fell silent');
  const timedOut = counter('task_timeouts_total', 'Attempts that ran out of time');
  const unstarted = counter('task_assignment_timeouts_total', 'Tasks assigned and never started');
  const wait = new Histogram({
    name: 'sluice_task_wait_seconds',
    help: 'From eligible to taken',
    labelNames: ['priority', 'queue', 'task_type'],
    buckets: waitBuckets,
    registers,
  });
  const execution = new Histogram({
    name: 'sluice_task_execution_seconds',
    help: 'How long attempts ran',
    labelNames: ['priority', 'status', 'queue', 'task_type'],
    buckets: durationBuckets,
    registers,
  });
  const duration = new Histogram({
    name: 'sluice_task_duration_seconds',
    help: 'From submit to end',
    labelNames: ['priority', 'status', 'queue', 'task_type'],
    buckets: durationBuckets,
    registers,
  });

  const pairs = new CountedPairs();
  const tell = () => {
    for (const { queue, task_type, untold } of pairs) {
      for (const [from, counts] of Object.entries(untold)) {
        for (const [to, count] of Object.entries(counts)) {
          moves.inc({ from, to }, count);
          tasks.inc({ status: to, queue, task_type }, count);
          counts[to as TaskEvent['to']] = 0;
        }
      }
    }
  };
  const note = (event: TaskEvent) => {
    const { from, to, priority, outcome, effectivePriority, waitMs, durationMs } = event;
    const { queue, task_type, untold } = pairs.of(event);
    const counts = (untold[from] ??= {});
    counts[to] = (counts[to] ?? 0) + 1;
    if (waitMs !== undefined) wait.observe({ priority, queue, task_type }, waitMs / 1000);
    if (durationMs !== undefined) {
      const status = outcome ?? to;
      execution.observe({ priority, status, queue, task_type }, durationMs / 1000);
    }
    if (hasEnded(to)) {
      const seconds = Math.max(0, event.at.getTime() - instantOf(event.taskId)) / 1000;
      duration.observe({ priority, status: to, queue, task_type }, seconds);
    }
    if (effectivePriority !== undefined && effectivePriority !== priority) {
      promoted.inc({ from: priority, to: effectivePriority });
    }
    if (outcome === 'lapsed') lapsed.inc();
    if (outcome === 'timed_out') timedOut.inc();
    if (event.errorCode === attemptErrorCodes.neverStarted) unstarted.inc();
    if (to === 'pending' && costsRetry(event)) retries.inc({ priority, reason: reasonOf(event) });
    if (to === 'dead_letter') deadLetters.inc({ reason: reasonOf(event) });
    if (to === 'dead_letter' || to === 'failed') failed.inc({ priority, reason: reasonOf(event) });
  };
  return { note, tell };
}

interface CountedPair {
  readonly queue: string;
  readonly task_type: string;
  /** Transitions since they were told last, by `from`, then by `to`. */
  readonly untold: Partial<Record<TaskEvent['from'], Partial<Record<TaskEvent['to'], number>>>>;
}

/** The first pairs of queue and task type that were seen, and one for all others. */
class CountedPairs {
  readonly #byQueue = new Map<string, Map<string, CountedPair>>();
  readonly #all: CountedPair[] = [];
  #others: CountedPair | null = null;

  of({ queue, taskType }: Pick<TaskEvent, 'queue' | 'taskType'>): CountedPair {
    return this.#byQueue.get(queue)?.get(taskType) ?? this.#add(queue, taskType);
  }

  #add(queue: string, taskType: string): CountedPair {
    if (this.#all.length > maxPairs) return this.#others ?? this.#create('other', 'other');
    if (this.#all.length === maxPairs) return (this.#others = this.#create('other', 'other'));
    const pair = this.#create(queue, taskType);
    const ofQueue = this.#byQueue.get(queue) ?? new Map<string, CountedPair>();
    this.#byQueue.set(queue, ofQueue.set(taskType, pair));
    return pair;
  }

  #create(queue: string, taskType: string): CountedPair {
    const pair = { queue, task_type: taskType, untold: {} };
    this.#all.push(pair);
    return pair;
  }

  [Symbol.iterator](): Iterator<CountedPair> {
    return this.#all[Symbol.iterator]();
  }
}

/** Counted where they are refused; read when it is scraped. */
function countRefusals(
  registry: Registry,
  refused: () => Readonly<Record<string, number>>,
): Counter<'reason'> {
  return new Counter({
    name: 'sluice_admission_rejected_total',
    help: 'Submits that were refused',
    labelNames: ['reason'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [reason, count] of Object.entries(refused())) this.inc({ reason }, count);
    },
  });
}

function costsRetry({ outcome }: TaskEvent): boolean {
  return outcome === 'failed' || outcome === 'timed_out' || outcome === 'lapsed';
}

function reasonOf({ errorCode }: TaskEvent): string {
  return errorCode !== undefined && knownReasons.has(errorCode) ? errorCode : 'other';
}

function showGauges(
  registry: Registry,
): (statistics: Statistics, queues: readonly QueueView[], desired: number | null) => void {
  const registers = [registry];
  const gauge = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    new Gauge({ name: `sluice_${name}`, help, labelNames, registers });

  const depth = gauge('queue_depth', 'Tasks that could be taken', ['queue', 'priority']);
  const running = gauge('queue_running_tasks', 'Tasks that run', ['queue']);
  const tokens = gauge('limit_tokens', 'Tokens left of a limit', ['queue', 'unit']);
  const circuit = gauge('circuit_state', '0 closed, 1 half open, 2 open', ['queue']);
  const age = gauge('queue_age_seconds', 'Age of the oldest task', ['priority']);
  const workers = gauge('workers', 'Workers', ['status']);
  const activeTasks = gauge('active_tasks', 'Tasks that have not ended');
  const used = gauge('worker_capacity_used_ratio', 'Share of all places that is in use');

  const desiredWorkers = gauge('scaling_desired_workers', 'Workers that there should be');

  return (statistics, queues, desired) => {
    desiredWorkers.set(desired ?? Number.NaN);
    for (const perQueue of [depth, running, tokens, circuit]) perQueue.reset();
    for (const { name: queue, live } of queues) {
      for (const priority of priorities) {
        depth.set({ queue, priority }, live.effectiveDepth[priority]);
      }
      running.set({ queue }, live.running);
      circuit.set({ queue }, { closed: 0, half_open: 1, open: 2 }[live.circuit]);
      for (const [unit, left] of Object.entries(live.tokens)) tokens.set({ queue, unit }, left);
    }
    for (const priority of priorities) {
      age.set({ priority }, statistics.queues[priority].oldestAgeSeconds ?? 0);
    }
    activeTasks.set(statistics.admission.active);
    const { active, draining, dead, totalCapacity, usedCapacity } = statistics.workers;
    workers.set({ status: 'active' }, active);
    workers.set({ status: 'draining' }, draining);
    workers.set({ status: 'dead' }, dead);
    used.set(totalCapacity === 0 ? 0 : usedCapacity / totalCapacity);
  };
}
