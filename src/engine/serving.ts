import { Loop } from '../runtime/loop.js';
import { DatabaseAwayError, LockedError } from '../store/database.js';
import { findGeneration } from '../store/generation.js';
import { AdmissionCheck } from './admission-check.js';
import type { Alerts } from './alerts.js';
import type { Bench } from './bench.js';
import type { Checkpoints } from './checkpoints.js';
import type { Circuits } from './circuits.js';
import { CounterUpkeep } from './counter-upkeep.js';
import type { Counters } from './counters.js';
import type { EngineContext } from './context.js';
import type { DeadLetterPatterns } from './dead-letter-patterns.js';
import type { Feeder } from './feeder.js';
import type { Fleet } from './fleet.js';
import type { Hearing } from './hearing.js';
import type { LostEntries } from './lost-entries.js';
import type { Measurements } from './measurements.js';
import type { MinuteSummary } from './minute-summary.js';
import type { PartitionUpkeep } from './partition-upkeep.js';
import type { PollWaiters } from './poll-waiters.js';
import type { PushbackLedger } from './pushback-ledger.js';
import type { QueueDirectory } from './queue-directory.js';
import { rebuild, type Rebuilt } from './rebuild.js';
import type { Retention } from './retention.js';
import type { Sampling } from './sampling.js';
import { ServingTurn } from './serving-turn.js';
import type { Sweeper } from './sweeper.js';
import type { TaskTypes } from './task-types.js';

export type Role =
  /** Feeds, hands out and sweeps; one process at a time on a ready queue in memory. */
  | 'serve'
  /** Submits, reads and cancels; any number of processes. */
  | 'submit';

const queueRefreshMs = 2_000;
/** Only what the bus did not tell. */
const benchRefreshMs = 10_000;
/** How soon a shared ready queue that was flushed is noticed when nobody polls. */
const lookAfterMs = 500;
/** How soon it is noticed that another process began a generation by mistake. */
const lookAfterOwnMs = 2_000;
const rebuildRetryMs = 100;
const notServingWaitMs = 200;

export interface ServingParts {
  readonly alerts: Alerts;
  readonly bench: Bench;
  readonly checkpoints: Checkpoints;
  readonly circuits: Circuits;
  readonly counters: Counters;
  readonly feeder: Feeder;
  readonly fleet: Fleet;
  readonly hearing: Hearing;
  readonly lostEntries: LostEntries;
  readonly measurements: Measurements;
  readonly partitions: PartitionUpkeep;
  readonly patterns: DeadLetterPatterns;
  readonly pushbacks: PushbackLedger;
  readonly queues: QueueDirectory;
  readonly retention: Retention;
  readonly sampling: Sampling;
  readonly summary: MinuteSummary;
  readonly sweeper: Sweeper;
  readonly types: TaskTypes;
  readonly waiters: PollWaiters;
  readonly isClosing: () => boolean;
  /** Told once each time it has to stand by, with a sentence for people. */
  readonly onStandby: (message: string) => void;
}

/** What this process does in the background: it keeps its turn, and runs all ticks while it serves. */
export class Serving {
  readonly #context: EngineContext;
  readonly #parts: ServingParts;
  /** Null: it never serves. */
  readonly #turn: ServingTurn | null;
  #turnLoop: Loop | null = null;
  /** Also while it stands by: workers may come to any server. */
  #hearingLoop: Loop | null = null;
  /** Runs in every role, also on standby. */
  #partitionLoop: Loop | null = null;
  /** Runs in every role: a process that only submits counts its submits. */
  #countingLoop: Loop | null = null;
  /** Runs in every role: workers may report to any server. */
  #ledgerLoop: Loop | null = null;
  /** Run only while this process serves. */
  #servingLoops: Loop[] = [];
  #isHandedOver = false;
  #rebuilding: Promise<Rebuilt> | null = null;
  /** Of the contents that this process filled in last. */
  #generation: number | null = null;

  constructor(context: EngineContext, role: Role, parts: ServingParts) {
    this.#context = context;
    this.#parts = parts;
    this.#turn =
      role === 'submit'
        ? null
        : new ServingTurn(context, {
            begin: () => this.#beginServing(),
            end: (isLeaving) => this.#endServing(isLeaving),
            onStandby: parts.onStandby,
          });
  }

  /** Resolves when this process serves, or knows that it has to stand by. */
  async begin(): Promise<void> {
    const { partitions } = this.#parts;
    await partitions.tick();
    this.#partitionLoop = this.#loop(() => partitions.tick());
    this.#partitionLoop.start();
    this.#countingLoop = this.#loop(() => this.#parts.counters.tick());
    this.#countingLoop.start();
    this.#ledgerLoop = this.#loop(() => this.#parts.pushbacks.tick());
    this.#ledgerLoop.start();
    // In every role: whatever submits needs them.
    await this.#parts.types.watch();
    const turn = this.#turn;
    if (turn === null) return;
    this.#hearingLoop = this.#loop(() => this.#parts.hearing.prove());
    this.#hearingLoop.start();
    await turn.first();
    await turn.begun();
    this.#turnLoop = this.#loop(() => turn.tick());
    this.#turnLoop.start();
  }

  /**
   * This process will end soon: a standby takes over now, while this one still answers what a standby
   * answers. Without a standby it goes on until `leave`.
   */
  async handOver(): Promise<void> {
    const turn = this.#turn;
    if (turn === null || this.#context.mode === 'redis') return;
    try {
      if (turn.holds() && !(await this.#parts.hearing.isAnotherThere())) return;
      this.#isHandedOver = true;
      await this.#turnLoop?.stop();
      await turn.leave();
    } catch (error) {
      this.noteError(error);
    }
  }

  /** Resolves when nothing of it runs any more, and another process may serve. */
  async leave(): Promise<void> {
    await this.#partitionLoop?.stop();
    await this.#parts.types.stop();
    await this.#turnLoop?.stop();
    await this.#hearingLoop?.stop();
    await this.#turn?.leave().catch((error: unknown) => {
      this.noteError(error);
    });
    await this.#countingLoop?.stop();
    await this.#ledgerLoop?.stop();
    const { counters, pushbacks } = this.#parts;
    for (const write of [() => counters.writeAll(), () => pushbacks.flush()]) {
      await write().catch((error: unknown) => {
        this.noteError(error);
      });
    }
  }

  /** Null while this process hands out work; else why it does not. */
  notServing(): string | null {
    if (this.#parts.isClosing()) return 'This process is closing.';
    if (this.#turn === null) return 'This process only submits and reads.';
    if (this.#isHandedOver) return 'This process is about to end; another one serves.';
    return this.#turn.notServing();
  }

  /** Not null: servers of the other kind, with or without Redis, serve this database. */
  mixture(): string | null {
    return this.#turn?.mixture ?? null;
  }

  /** For whoever found the ready queue without its contents, and can't wait until they are back. */
  rebuildSoon(): void {
    this.#rebuild().catch((error: unknown) => {
      this.noteError(error);
    });
  }

  noteError(error: unknown): void {
    if (error instanceof DatabaseAwayError) this.#parts.hearing.lost();
    if (error instanceof DatabaseAwayError || error instanceof LockedError) {
      this.#context.log.warn(
        { err: error },
        'Postgres does not do what a tick needs; trying again',
      );
    } else {
      this.#context.log.error({ err: error }, 'a background tick failed; trying again');
    }
  }

  async #beginServing(): Promise<void> {
    const { alerts, bench, checkpoints, circuits, feeder, fleet } = this.#parts;
    const { hearing, lostEntries, patterns, queues, retention, sweeper } = this.#parts;
    hearing.lost();
    await hearing.prove();
    // Others may have buried a worker meanwhile; the rows know.
    fleet.clear();
    await bench.refresh();
    await this.#rebuild();
    // What a process committed and died before it could tell.
    await queues.refresh();
    await feeder.fill();
    const feeding = this.#loop(() => this.#whileServing(() => feeder.tick()));
    feeder.begin(() => {
      feeding.wake();
    });
    const sweeping = this.#loop(() => this.#whileServing(() => sweeper.tick()));
    const retaining = this.#loop(
      () => this.#whileServing(() => retention.tick()),
      this.#context.settings.retentionIntervalMs,
    );
    const walking = this.#loop(() => this.#whileServing(() => lostEntries.tick()));
    lostEntries.begin(() => {
      walking.wake();
    });
    const refreshing = this.#loop(async () => {
      await queues.refresh();
      return queueRefreshMs;
    });
    const recalling = this.#loop(async () => {
      fleet.forgetSilent();
      await bench.refresh();
      return benchRefreshMs;
    });
    const recording = this.#loop(() => this.#whileServing(() => checkpoints.tick()));
    const settling = this.#loop(() => this.#whileServing(() => circuits.tick()));
    const lookingAfter = this.#loop(() =>
      this.#context.mode === 'redis'
        ? this.#lookAfter()
        : this.#whileServing(() => this.#lookAfterOwn()),
    );
    const upkeep = new CounterUpkeep(this.#context);
    const summing = this.#loop(() => this.#whileServing(() => upkeep.tick()));
    const watching = this.#loop(() => this.#whileServing(() => this.#parts.measurements.tick()));
    const classifying = this.#loop(() => this.#whileServing(() => patterns.tick()));
    patterns.begin(() => {
      classifying.wake();
    });
    const check = new AdmissionCheck(this.#context);
    const comparing = this.#loop(() => this.#whileServing(() => check.tick()));
    const { sampling, summary } = this.#parts;
    const summarizing = this.#loop(() => this.#whileServing(() => summary.tick()));
    const measuring = this.#loop(() => this.#whileServing(() => sampling.tick()));
    this.#servingLoops = [feeding, sweeping, walking, refreshing, recalling, recording, settling];
    this.#servingLoops.push(classifying, comparing, lookingAfter, retaining, summing, watching);
    this.#servingLoops.push(summarizing, measuring);
    if (alerts.options !== null) {
      this.#servingLoops.push(this.#loop(() => this.#whileServing(() => alerts.tick())));
    }
    for (const loop of this.#servingLoops) loop.start();
  }

  /** A turn that could not be renewed may be another's: its ready queue needs what is fed. */
  async #whileServing(tick: () => Promise<number>): Promise<number> {
    return this.#turn?.holds() === true ? tick() : notServingWaitMs;
  }

  async #endServing(isLeaving: () => boolean): Promise<void> {
    const { alerts, checkpoints, feeder, sampling, waiters } = this.#parts;
    feeder.end();
    await Promise.all(this.#servingLoops.map((loop) => loop.stop()));
    this.#servingLoops = [];
    for (const part of [alerts, sampling]) {
      await part.leave().catch((error: unknown) => {
        this.noteError(error);
      });
    }
    waiters.wakeAll();
    if (this.#context.mode === 'memory') await checkpoints.saveFinally(isLeaving);
  }

  /** The ready queue may be lost while nobody polls, and be back without its contents. */
  async #lookAfter(): Promise<number> {
    return (await this.#rebuild()).kind === 'closed' ? rebuildRetryMs : lookAfterMs;
  }

  /**
   * A process whose turn was over before it had begun may have begun a generation nevertheless: no claim
   * of these contents would ever pass again.
   */
  async #lookAfterOwn(): Promise<number> {
    if ((await findGeneration(this.#context.db)) !== this.#generation) await this.#rebuild();
    return lookAfterOwnMs;
  }

  #rebuild(): Promise<Rebuilt> {
    const { checkpoints, feeder, queues, waiters } = this.#parts;
    this.#rebuilding ??= rebuild(this.#context, queues, checkpoints)
      .then((rebuilt) => {
        if (rebuilt.kind === 'anew') {
          this.#generation = rebuilt.generation;
          feeder.discoverSoon();
          waiters.lookAgain();
        }
        return rebuilt;
      })
      .finally(() => {
        this.#rebuilding = null;
      });
    return this.#rebuilding;
  }

  #loop(tick: () => Promise<number>, errorDelayMs?: number): Loop {
    return new Loop({
      tick,
      ...(errorDelayMs === undefined ? {} : { errorDelayMs }),
      onError: (error) => {
        this.noteError(error);
      },
    });
  }
}
