import { SluiceError } from '../domain/errors.js';
import { averageCost, forecastOf, type ForecastFacts } from '../domain/forecast.js';
import { instantIn } from '../domain/instant.js';
import { priorities } from '../domain/priority.js';
import { countOf } from '../domain/counters.js';
import type { QueueForecast } from '../protocol/forecast-api.js';
import { findLanes } from '../store/find-lanes.js';
import { findNextInLine } from '../store/find-next-in-line.js';
import { findQueue } from '../store/queues.js';
import { turnGiver } from '../runtime/turns.js';
import type { CountedGroup } from '../store/scaling.js';
import type { ActiveWorkers } from './active-workers.js';
import { approximateNow, instant, type EngineContext } from './context.js';
import type { Counters } from './counters.js';
import type { Estimate } from './estimate.js';
import type { Line } from './line.js';
import type { LiveQueues } from './live-queues.js';
import type { QueueDirectory } from './queue-directory.js';

export interface ForecastParts {
  readonly active: ActiveWorkers;
  readonly counters: Counters;
  readonly estimate: Estimate;
  readonly line: Line;
  readonly live: LiveQueues;
  readonly queues: QueueDirectory;
  readonly notServing: () => string | null;
}

const maxNext = 1_000;
const maxLanes = 100;
const minuteMs = 60_000;
/** What comes in goes up and down: five to six minutes are counted. */
const inflowMs = 5 * minuteMs;

/** When a queue will be empty and which dispatch deadlines it will miss. */
export class Forecasts {
  readonly #context: EngineContext;
  readonly #parts: ForecastParts;

  constructor(context: EngineContext, parts: ForecastParts) {
    this.#context = context;
    this.#parts = parts;
  }

  /** Refuses where the ready queue is another process's: only that one knows what may start. */
  async getForecast(queue: string): Promise<QueueForecast> {
    this.#refuseUnlessServing();
    if ((await findQueue(this.#context.db.reads, queue)) === null) {
      throw new SluiceError('queue_not_found', `There is no queue ${queue}.`);
    }
    const facts = await this.#factsOf(queue);
    const nowMs = approximateNow(this.#context).getTime();
    const at = (ms: number | null) => (ms === null ? null : instantIn(nowMs, ms));
    const { emptyInMs, emptyInMsWithInflow, deadlines, ...forecast } = forecastOf(facts);
    const { firstMissedInMs, ...counted } = deadlines;
    return {
      queue,
      ...forecast,
      emptyAt: at(emptyInMs),
      emptyAtWithInflow: at(emptyInMsWithInflow),
      deadlines: { ...counted, firstMissedAt: at(firstMissedInMs) },
    };
  }

  async #factsOf(queue: string): Promise<ForecastFacts> {
    const { estimate, line, queues } = this.#parts;
    const { db } = this.#context;
    const now = instant(this.#context);
    const live = await this.#parts.live.now(queue);
    const { backlog } = await line.of(queue);
    const waiting = priorities.reduce((sum, one) => sum + live.depth[one], backlog);
    const next = waiting === 0 ? [] : await findNextInLine(db.reads, queue, maxNext, now);
    return {
      factors: { ...estimate.factorsWith(queue, live), cost: averageCost(next) },
      waiting,
      inflowPerMs: await this.#inflowPerMs(queue),
      ...(await this.#workersFor(queue)),
      next,
      ageing: queues.settingsOf(queue).ageing,
    };
  }

  /** While some workers are not looked at, it is not known how many of them can do it. */
  async #workersFor(queue: string): Promise<Pick<ForecastFacts, 'hasWorker' | 'workerSlots'>> {
    const lanes = await findLanes(this.#context.db.reads, [queue], maxLanes);
    const workforce = await this.#parts.active.get();
    const able = new Set<CountedGroup>();
    const giveTurn = turnGiver();
    for (const lane of lanes) {
      for (const group of workforce.ableTo(lane)) able.add(group);
      await giveTurn();
    }
    if (workforce.unseen.workers > 0) return { hasWorker: true, workerSlots: null };
    const workerSlots = [...able].reduce((sum, { capacity }) => sum + capacity, 0);
    return { hasWorker: able.size > 0, workerSlots: able.size > 0 ? workerSlots : null };
  }

  /** Also what comes back: retries, deferred and released tasks. */
  async #inflowPerMs(queue: string): Promise<number> {
    const nowMs = approximateNow(this.#context).getTime();
    const fromMs = nowMs - inflowMs - ((nowMs - inflowMs) % minuteMs);
    const span = { fromMs, toMs: nowMs + minuteMs, stepSeconds: 3_600 };
    const pieces = await this.#parts.counters.findCounts(queue, span);
    const names = ['submitted', 'retried', 'deferred', 'released'] as const;
    const came = pieces.reduce(
      (sum, { counts }) => names.reduce((total, name) => total + countOf(counts, name), sum),
      0,
    );
    return came / (nowMs - fromMs);
  }

  #refuseUnlessServing(): void {
    const notServing = this.#parts.notServing();
    if (notServing !== null) throw new SluiceError('unavailable', notServing);
    const trouble = this.#context.ready.trouble();
    if (trouble === null) return;
    throw new SluiceError('unavailable', trouble, { retryAfterSeconds: 1 });
  }
}
