import type { AttemptError } from '../domain/attempt-error.js';
import {
  countsAgainstWorker,
  mayBeBenched,
  mustBeBenched,
  type FailuresInARow,
} from '../domain/bench.js';
import type { WorkerId } from '../domain/ids.js';
import { laneKey, type Lane } from '../domain/lane.js';
import { benchWorker, trustWorker } from '../store/workers.js';
import type { Bench } from './bench.js';
import { instant, type EngineContext } from './context.js';
import type { Item, News } from './news.js';
import type { Tallies } from './tallies.js';
import { TrackRecord } from './track-record.js';

const askAgainMs = 1_000;
const maxAsked = 10_000;

interface Ended {
  readonly workerId: WorkerId;
  readonly lane: Lane;
}

interface Failed extends Ended {
  readonly runMs: number;
  readonly error: AttemptError;
  /** Its service is known to be down for everybody. */
  readonly isOutage: boolean;
}

/**
 * Benches workers that fail while others succeed: one that fails at once is always the least loaded
 * and would drain the queue into the dead letters. Nothing here may fail a report.
 */
export class WorkerJudge {
  readonly #context: EngineContext;
  readonly #bench: Bench;
  readonly #news: News;
  readonly #tallies: Pick<Tallies, 'workerFailures'>;
  readonly #record = new TrackRecord();
  readonly #askedAtMs = new Map<WorkerId, number>();

  constructor(
    context: EngineContext,
    bench: Bench,
    news: News,
    tallies: Pick<Tallies, 'workerFailures'>,
  ) {
    this.#context = context;
    this.#bench = bench;
    this.#news = news;
    this.#tallies = tallies;
  }

  async succeeded(ended: readonly Ended[]): Promise<void> {
    const nowMs = performance.now();
    const doubted = new Set<WorkerId>();
    let last: Ended | undefined;
    for (const one of ended) {
      const { workerId, lane } = one;
      // Tasks of one lane that a worker did come together, and say no more than the first.
      if (workerId === last?.workerId && lane === last.lane) continue;
      last = one;
      this.#record.succeeded(workerId, laneKey(lane), nowMs);
      if (this.#bench.standing(workerId).kind !== 'trusted') doubted.add(workerId);
    }
    for (const workerId of doubted) await this.#trust(workerId);
    this.#giveBack(ended);
  }

  async failed(ended: readonly Failed[]): Promise<void> {
    const nowMs = performance.now();
    const failed = new Set<WorkerId>();
    for (const { workerId, lane, runMs, error, isOutage } of ended) {
      if (isOutage || !countsAgainstWorker(error)) continue;
      const kind = laneKey(lane);
      this.#record.stumbled(workerId, kind);
      // What it was given before it was benched says nothing new.
      if (this.#bench.standing(workerId).kind === 'benched') continue;
      this.#record.failed(workerId, kind, nowMs - runMs, nowMs);
      failed.add(workerId);
    }
    for (const workerId of failed) await this.#judge(workerId);
    this.#giveBack(ended);
  }

  /** The service of this queue turned out to be down: who failed at it until now failed like all. */
  forgive(queue: string): void {
    this.#record.forgive((kind) => kind.startsWith(`${queue}\n`));
  }

  /** Its failures were reported to another server, and who succeeds reports here. */
  heardFailing({ workerId, failures }: Item & { kind: 'failing' }): void {
    if (this.#bench.standing(workerId).kind === 'benched') return;
    const nowMs = performance.now();
    const rows = failures.map(({ kind, count, ageMs, begunAgeMs }) => {
      return [kind, { count, sinceMs: nowMs - ageMs, begunMs: nowMs - begunAgeMs }] as const;
    });
    void this.#benchIfOthersSucceed(workerId, new Map(rows));
  }

  /** Here or at another server. */
  heardBenched({ workerId, untilMs }: Item & { kind: 'benched' }): void {
    this.#record.forgetFailures(workerId);
    this.#bench.set(workerId, untilMs);
  }

  async #judge(workerId: WorkerId): Promise<void> {
    const failures = this.#record.failuresOf(workerId);
    if (!mayBeBenched(failures, this.#isTried(workerId))) return;
    if (await this.#benchIfOthersSucceed(workerId, failures)) return;
    if (this.#context.mode !== 'memory') this.#ask(workerId, failures);
  }

  async #benchIfOthersSucceed(workerId: WorkerId, failures: FailuresInARow): Promise<boolean> {
    const nowMs = performance.now();
    const witnesses = new Set<WorkerId>();
    const othersSucceedAt = (kind: string): boolean => {
      const own = failures.get(kind);
      if (own === undefined) return false;
      const others = this.#record.witnesses(kind, workerId, own, nowMs);
      for (const other of others) witnesses.add(other);
      return others.length > 0;
    };
    if (!mustBeBenched(failures, this.#isTried(workerId), othersSucceedAt)) return false;
    return this.#carefully(() => this.#benchNow(workerId, failures, [...witnesses]));
  }

  async #benchNow(
    workerId: WorkerId,
    failures: FailuresInARow,
    witnesses: readonly WorkerId[],
  ): Promise<boolean> {
    const { db, settings, transitions } = this.#context;
    const now = instant(this.#context);
    const outcome = await benchWorker(db, workerId, witnesses, settings.benchMs, now);
    if (outcome.kind === 'no witness') this.#record.dismiss(witnesses);
    if (outcome.kind !== 'benched') return outcome.kind === 'already';
    const { until } = outcome;
    this.#tallies.workerFailures.add('suspended');
    this.#news.tell({ kind: 'benched', workerId, untilMs: until.getTime() });
    const counts = [...failures].map(([kind, { count }]) => `${String(count)} × ${readable(kind)}`);
    transitions?.event('worker suspended: it fails at what others succeed at', 'suspended', {
      worker_id: workerId,
      suspended_until: until,
      failed_in_a_row: counts,
      others_succeeded: witnesses,
    });
    return true;
  }

  async #trust(workerId: WorkerId): Promise<void> {
    await this.#carefully(async () => {
      await trustWorker(this.#context.db, workerId);
      this.#news.tell({ kind: 'benched', workerId, untilMs: null });
      const told = { worker_id: workerId };
      const { transitions } = this.#context;
      transitions?.event('worker trusted again: it succeeded', 'trusted', told, 'info');
      return true;
    });
  }

  #ask(workerId: WorkerId, failures: FailuresInARow): void {
    const nowMs = performance.now();
    if (nowMs - (this.#askedAtMs.get(workerId) ?? -Infinity) < askAgainMs) return;
    if (this.#askedAtMs.size >= maxAsked) this.#askedAtMs.clear();
    this.#askedAtMs.set(workerId, nowMs);
    this.#news.tell({
      kind: 'failing',
      workerId,
      failures: [...failures].map(([kind, { count, sinceMs, begunMs }]) => {
        return { kind, count, ageMs: nowMs - sinceMs, begunAgeMs: nowMs - begunMs };
      }),
    });
  }

  /** False when Postgres did not answer: the next failure, or success, asks again. */
  async #carefully(write: () => Promise<boolean>): Promise<boolean> {
    try {
      return await write();
    } catch (error) {
      this.#context.log.warn({ err: error }, 'could not change whether a worker is benched');
      return false;
    }
  }

  /** When they are judged: who is benched by its last probe gets no other in between. */
  #giveBack(ended: readonly Ended[]): void {
    for (const { workerId } of ended) this.#bench.giveBack(workerId, 1);
  }

  #isTried(workerId: WorkerId): boolean {
    return this.#bench.standing(workerId).kind === 'tried';
  }
}

function readable(kind: string): string {
  const [queue = '', taskType = '', capabilities = ''] = kind.split('\n');
  const needs = capabilities === '' ? '' : ` (${capabilities.split('\t').join(', ')})`;
  return `${queue}/${taskType}${needs}`;
}
