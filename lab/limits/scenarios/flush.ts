import type { TaskDraft } from '../../../src/protocol/tasks-api.js';
import { deliveryDelays, timesOf } from '../claims.js';
import { Cluster, requests } from '../cluster.js';
import {
  jitterOf,
  mostBeyondRate,
  mostInWindow,
  overlapOf,
  seededRandom,
} from '../../shared/measure.js';
import { Probe } from '../probe.js';
import {
  count,
  judged,
  ms,
  noted,
  seconds,
  type Row,
  type Scenario,
} from '../../shared/scenario.js';

const queues = Array.from({ length: 6 }, (_, index) => `flushed-${index}`);
/** The first of them has slots besides its rate, and these are what holds it back. */
const [slotQueue = '', burstQueue = ''] = queues;
const slots = 4;
const rate = 500;
const perSeconds = 10;
/** Of the second. Flushed in the middle, it must not be full again. */
const burst = 200;

export const flush: Scenario = {
  name: 'flush',
  about:
    '2 servers, 4 workers, 6 queues with limits: Redis flushed at one third, killed and started again at two',
  run: async (lab) => {
    const length = lab.size(20_000, 3_000);
    await using cluster = await Cluster.start(lab.postgresUrl, { servers: 2, ready: 'redis' });
    for (const queue of queues) {
      const limit = requests(rate, perSeconds);
      await cluster.put(queue, {
        limits: [queue === burstQueue ? { ...limit, burst } : limit],
        maxConcurrency: queue === slotQueue ? slots : null,
      });
    }
    await cluster.submit(drawTasks(length));
    const probe = new Probe(cluster.urls);
    await cluster.startWorkers({ workers: 4, concurrency: 100 });
    const faults = new Faults(cluster, length);
    await lab.progress.until('ended', length, async () => {
      const ended = length - (await cluster.countLiving());
      await faults.look(ended);
      return ended;
    });
    const { most, least } = await probe.stop();
    return [...(await endRows(cluster, length)), ...(await limitRows(cluster, most - least))];
  },
};

function drawTasks(length: number): TaskDraft[] {
  const random = seededRandom(1);
  return Array.from({ length }, (_, index) => ({
    taskType: 'call',
    queue: queues[index % queues.length] ?? slotQueue,
    parameters: { hold_ms: Math.round(50 + random() * 100) },
  }));
}

class Faults {
  readonly #left: { readonly at: number; readonly make: () => Promise<void> }[];

  constructor(cluster: Cluster, length: number) {
    this.#left = [
      { at: length / 3, make: () => cluster.flushRedis() },
      { at: (2 * length) / 3, make: () => cluster.killRedis() },
    ];
  }

  async look(ended: number): Promise<void> {
    const [next] = this.#left;
    if (next === undefined || ended < next.at) return;
    this.#left.shift();
    await next.make();
  }
}

async function endRows(cluster: Cluster, length: number): Promise<Row[]> {
  const [ended] = await cluster.database.query<{ completed: number; again: number }>(`
    select count(*) filter (where status = 'completed')::integer as completed,
      count(*) filter (where attempt > 1)::integer as again
    from sluice.task_history`);
  const { calls } = cluster.standIn;
  const called = new Set(calls.map(({ taskId }) => taskId));
  const completed = ended?.completed ?? 0;
  const again = ended?.again ?? 0;
  const twice = calls.length - called.size;
  return [
    judged(
      { what: 'completed', measured: count(completed), numbers: { completed } },
      count(length),
      completed === length && called.size === length,
    ),
    judged(
      {
        what: 'run twice by the log of the service; more than one attempt in Postgres',
        measured: `${count(twice)}; ${count(again)}`,
        numbers: { twice, again },
      },
      '0; 0',
      twice === 0 && again === 0,
    ),
  ];
}

async function limitRows(cluster: Cluster, claimJitterMs: number): Promise<Row[]> {
  const { calls } = cluster.standIn;
  const claims = await cluster.claims();
  const callJitterMs = claimJitterMs + jitterOf(deliveryDelays(claims, calls));
  const claimWindowMs = perSeconds * 1000 - claimJitterMs;
  const callWindowMs = perSeconds * 1000 - callJitterMs;
  const times = (queue: string) =>
    calls.filter((call) => call.queue === queue).map(({ receivedAt }) => receivedAt);
  const evenQueues = queues.filter((queue) => queue !== burstQueue);
  const mostClaims = Math.max(
    ...evenQueues.map((queue) => mostInWindow(timesOf(claims, queue), claimWindowMs)),
  );
  const mostCalls = Math.max(
    ...evenQueues.map((queue) => mostInWindow(times(queue), callWindowMs)),
  );
  const beyondRate = mostBeyondRate(
    timesOf(claims, burstQueue),
    rate / (perSeconds * 1000),
    claimJitterMs,
  );
  const stretches = calls
    .filter(({ queue }) => queue === slotQueue)
    .map(({ receivedAt, answeredAt }) => ({ from: receivedAt, to: answeredAt ?? receivedAt }));
  const atOnce = overlapOf(stretches, slots, Infinity).most;
  const allTimes = claims.map(({ at }) => at);
  const gaps = allTimes.slice(1).map((at, index) => at - (allTimes[index] ?? at));
  const longestMs = Math.max(...gaps);
  const tookMs = (allTimes.at(-1) ?? 0) - (allTimes[0] ?? 0);
  return [
    judged(
      {
        what: `most claims of any queue without a burst in ${perSeconds} s less ${ms(claimJitterMs)}`,
        measured: count(mostClaims),
        numbers: { mostClaims, claimWindowMs },
      },
      `≤ ${rate}`,
      mostClaims <= rate,
    ),
    judged(
      {
        what: `most calls of any queue without a burst in ${perSeconds} s less ${ms(callJitterMs)}`,
        measured: count(mostCalls),
        numbers: { mostCalls, callWindowMs },
      },
      `≤ ${rate}`,
      mostCalls <= rate,
    ),
    judged(
      {
        what: `claims beyond the rate, of the queue with a burst of ${burst}`,
        measured: count(beyondRate),
        numbers: { beyondRate },
      },
      `≤ ${burst}`,
      beyondRate <= burst,
    ),
    judged(
      {
        what: `at once at the service, of the queue with max_concurrency ${slots}`,
        measured: count(atOnce),
        numbers: { atOnce },
      },
      `≤ ${slots}`,
      atOnce <= slots,
    ),
    noted({
      what: 'longest time without a claim; all in all',
      measured: `${seconds(longestMs)}; ${seconds(tookMs)}`,
      numbers: { longestMs, tookMs },
    }),
  ];
}
