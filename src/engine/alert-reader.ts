import type { AlertSnapshot } from '../domain/alerts/snapshot.js';
import {
  readDeadLetters,
  readHistory,
  readOldest,
  readScheduledLateness,
  readWorkers,
} from '../store/alert-readings.js';
import { countNewPatterns } from '../store/dead-letter-patterns.js';
import { readWebhookFailing } from '../store/webhook-deliveries.js';
import { instant, type EngineContext } from './context.js';
import type { Counters } from './counters.js';
import type { Health } from './health.js';
import type { Line } from './line.js';
import type { QueueDirectory } from './queue-directory.js';
import type { Scaler } from './scaler.js';
import { readWaiting } from './waiting-readings.js';

export interface AlertSources {
  readonly line: Line;
  readonly counters: Pick<Counters, 'lastMinute'>;
  readonly queues: Pick<QueueDirectory, 'troubled'>;
  readonly health: Pick<Health, 'findUnhindered'>;
  readonly scaler: Pick<Scaler, 'shortfall'>;
}

const minuteMs = 60_000;
const deadLettersEveryMs = 30_000;
/** A pattern of dead letters is new for so long after it was first seen. */
const newForMs = 10 * minuteMs;

type DeadLetters = Pick<
  AlertSnapshot,
  'replayableDeadLetters' | 'deadLetterReasons' | 'newDeadLetterPatterns'
>;

/** Measures what the alert rules read, with ten small statements at most. */
export class AlertReader {
  readonly #context: EngineContext;
  readonly #sources: AlertSources;
  #deadLetters: DeadLetters | null = null;
  #deadLettersAtMs = 0;

  constructor(context: EngineContext, sources: AlertSources) {
    this.#context = context;
    this.#sources = sources;
  }

  async read(nowMs: number): Promise<AlertSnapshot> {
    const { reads } = this.#context.db;
    const now = instant(this.#context);
    const waiting = await readWaiting(this.#sources.line);
    const oldest = await readOldest(reads, now);
    const workers = await readWorkers(reads, now);
    const scaling = await this.#sources.scaler.shortfall();
    const readings = {
      ...waiting,
      oldestSeconds: Math.max(...Object.values(oldest)),
      oldestHighSeconds: oldest.high,
      oldestMediumSeconds: oldest.medium,
      oldestLowSeconds: oldest.low,
      ...(await this.#readHistory(nowMs)),
      ...workers,
      ...(await this.#readDeadLetters(nowMs)),
      openCircuits: this.#sources.queues.troubled().filter(({ circuit }) => circuit.kind === 'open')
        .length,
      scheduledLateSeconds: await readScheduledLateness(reads, now),
      missingWorkers: scaling?.missing ?? 0,
      scaleOutFailingSeconds: secondsSince(scaling?.failingSince ?? null, nowMs),
      webhookFailingSeconds: await readWebhookFailing(reads, now),
    };
    return { ...readings, unclaimedSeconds: await this.#unclaimedSeconds(readings, nowMs) };
  }

  async #readHistory(nowMs: number) {
    const history = await readHistory(this.#context.db.reads, nowMs);
    const minute = history.since(minuteMs);
    const five = history.since(5 * minuteMs);
    return {
      completedLastMinute: minute('completed'),
      failedLastMinute: minute('failed'),
      deadLettersLastMinute: minute('dead_letter'),
      lapsedLastMinute: minute('lapsed'),
      neverStartedLastMinute: minute('never_started'),
      completedLast5Minutes: five('completed'),
      failedLast5Minutes: five('failed'),
      retriedLast5Minutes: five('retried'),
      idempotencyConflictsLast5Minutes: five('idempotency_conflict'),
      completedLastHour: history.since(60 * minuteMs)('completed'),
    };
  }

  async #readDeadLetters(nowMs: number): Promise<DeadLetters> {
    if (this.#deadLetters !== null && nowMs - this.#deadLettersAtMs < deadLettersEveryMs) {
      return this.#deadLetters;
    }
    const { reads } = this.#context.db;
    this.#deadLetters = {
      ...(await readDeadLetters(reads)),
      newDeadLetterPatterns: await countNewPatterns(reads, new Date(nowMs - newForMs)),
    };
    this.#deadLettersAtMs = nowMs;
    return this.#deadLetters;
  }

  /** Asked only when the numbers allow it: what is in the way of a task takes some statements to find out. */
  async #unclaimedSeconds(
    {
      oldestSeconds: ageSeconds,
      capacity,
      usedCapacity,
    }: Pick<AlertSnapshot, 'oldestSeconds' | 'capacity' | 'usedCapacity'>,
    nowMs: number,
  ): Promise<number> {
    if (ageSeconds * 1000 < minuteMs || usedCapacity >= capacity) return 0;
    if (this.#sources.counters.lastMinute(nowMs).started > 0) return 0;
    return (await this.#sources.health.findUnhindered()) === null ? 0 : ageSeconds;
  }
}

function secondsSince(then: Date | null, nowMs: number): number {
  return then === null ? 0 : Math.max(0, (nowMs - then.getTime()) / 1000);
}
