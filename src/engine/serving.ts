import { Loop } from '../runtime/loop.js';
import { DatabaseAwayError, LockedError } from '../store/database.js';
import { findGeneration } from '../store/generation.js';
import { sweepLetters } from '../store/mail.js';
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
import { Leadership } from './leadership.js';
import { ServingTurn } from './serving-turn.js';
import type { Sweeper } from './sweeper.js';
import type { TaskTypes } from './task-types.js';

export type Role =
  /** Hands out work; one process at a time leads: it keeps the ready queue, feeds and sweeps. With Redis each does. */
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
/** A process that lives collects its mail within seconds: older letters are to one that ended. */
const mailKeptMs = 60_000;
const mailSweepMs = 30_000;

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
}

/**
 * What this process does in the background. Every process that serves runs the ticks that its own calls need. The one that
 * leads also looks after the ready queue and the database; with Redis all do, in turns.
 */
export class Serving {
  readonly leadership: Leadership;
  readonly #context: EngineContext;
  readonly #parts: ServingParts;
  readonly #role: Role;
  /** Null: it never leads, and need not know who does. */
  readonly #turn: ServingTurn | null;
  #turnLoop: Loop | null = null;
  /** Run in every role: any process submits and counts, and workers may report to any. */
  #alwaysLoops: Loop[] = [];
  /** Of a process that serves: workers may come to any server. */
  #hearingLoop: Loop | null = null;
  /** Run while this process serves. */
  #servingLoops: Loop[] = [];
  /** Run only while it leads. */
  #leadingLoops: Loop[] = [];
  #isServing = false;
  #isHandedOver = false;
  #rebuilding: Promise<Rebuilt> | null = null;
  /** Of the contents that this process filled in last. */
  #generation: number | null = null;

  constructor(context: EngineContext, role: Role, parts: ServingParts) {
    this.#context = context;
    this.#parts = parts;
    this.#role = role;
    this.leadership = new Leadership(context);
    const isConcerned = role === 'serve' || context.replicas !== undefined;
    this.#turn = isConcerned
      ? new ServingTurn(context, role, {
          begin: () => this.#beginLeading(),
          end: (isLeaving) => this.#endLeading(isLeaving),
          onOther: (leader) => {
            this.leadership.follow(leader);
          },
        })
      : null;
    context.replicas?.attend(
      {
        onLeft: (windows) => {
          parts.feeder.noteLeft(windows);
        },
        onTaken: (entries) => {
          parts.feeder.noteTaken(entries);
        },
      },
      () => {
        this.#turnLoop?.wake();
      },
    );
  }

  /** Resolves when this process serves, or knows that it can't. */
  async begin(): Promise<void> {
    const { counters, partitions, pushbacks } = this.#parts;
    await partitions.tick();
    this.#alwaysLoops = [
      this.#loop(() => partitions.tick()),
      this.#loop(() => counters.tick()),
      this.#loop(() => pushbacks.tick()),
    ];
    for (const loop of this.#alwaysLoops) loop.start();
    // In every role: whatever submits needs them.
    await this.#parts.types.watch();
    const turn = this.#turn;
    if (turn === null) return;
    if (this.#role === 'serve') {
      this.#hearingLoop = this.#loop(() => this.#parts.hearing.prove());
      this.#hearingLoop.start();
    }
    await turn.first();
    await turn.begun();
    await this.#beginFollowing().catch((error: unknown) => {
      this.noteError(error);
    });
    this.#startTurns(turn);
  }

  /**
   * This process will end soon: another one takes over now, while this one still answers. Without another one it goes on
   * until `leave`.
   */
  async handOver(): Promise<void> {
    const turn = this.#turn;
    const { mode } = this.#context;
    if (turn === null || mode === 'redis') return;
    try {
      if (turn.holds() && !(await this.#parts.hearing.isAnotherThere())) return;
      this.#isHandedOver = true;
      await this.#turnLoop?.stop();
      turn.takeNoMore();
      await turn.leave();
      if (mode === 'replicas') this.#startTurns(turn);
    } catch (error) {
      this.noteError(error);
    }
  }

  /** Resolves when nothing of it runs any more, and another process may lead. */
  async leave(): Promise<void> {
    const [partitioning, ...counting] = this.#alwaysLoops;
    await partitioning?.stop();
    await this.#parts.types.stop();
    await this.#turnLoop?.stop();
    await this.#hearingLoop?.stop();
    await this.#turn?.leave().catch((error: unknown) => {
      this.noteError(error);
    });
    await this.#endServing();
    await Promise.all(counting.map((loop) => loop.stop()));
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
    if (this.#turn === null || this.#role === 'submit') {
      return 'This process only submits and reads.';
    }
    if (this.#context.mode === 'replicas') {
      return this.#isServing ? this.#turn.mixture : this.#turn.notServing();
    }
    if (this.#isHandedOver) return 'This process is about to end; another one serves.';
    return this.#turn.notServing();
  }

  /** Not null: servers of the other kind, with or without Redis, serve this database. */
  mixture(): string | null {
    return this.#turn?.mixture ?? null;
  }

  /** For whoever found the ready queue without its contents, and can't wait until they are back. */
  rebuildSoon(): void {
    if (this.#context.replicas?.leads === false) return;
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

  #startTurns(turn: ServingTurn): void {
    this.#turnLoop = this.#loop(async () => {
      const delayMs = await turn.tick();
      await this.#beginFollowing();
      return delayMs;
    });
    this.#turnLoop.start();
  }

  /** A replica serves whether or not it leads. */
  async #beginFollowing(): Promise<void> {
    const isReplica = this.#context.mode === 'replicas' && this.#role === 'serve';
    if (isReplica && this.mixture() === null) await this.#beginServing();
  }

  async #beginServing(): Promise<void> {
    if (this.#isServing) return;
    await this.#prepare();
    await this.#parts.queues.refresh();
    this.#startServing();
  }

  async #prepare(): Promise<void> {
    const { bench, fleet, hearing } = this.#parts;
    hearing.lost();
    await hearing.prove();
    // Others may have buried a worker meanwhile; the rows know.
    fleet.clear();
    await bench.refresh();
  }

  #startServing(): void {
    if (this.#isServing) return;
    this.#isServing = true;
    const { bench, circuits, feeder, fleet, measurements, queues, summary } = this.#parts;
    const feeding = this.#loop(() => this.#whileServing(() => feeder.tick()));
    feeder.begin(() => {
      feeding.wake();
    });
    this.#servingLoops = [
      feeding,
      this.#loop(async () => {
        await queues.refresh();
        return queueRefreshMs;
      }),
      this.#loop(async () => {
        fleet.forgetSilent();
        await bench.refresh();
        return benchRefreshMs;
      }),
      this.#loop(() => this.#whileServing(() => circuits.tick())),
      this.#loop(() => this.#whileServing(() => measurements.tick())),
      this.#loop(() => this.#whileServing(() => summary.tick())),
    ];
    for (const loop of this.#servingLoops) loop.start();
  }

  async #endServing(): Promise<void> {
    if (!this.#isServing) return;
    this.#isServing = false;
    this.#parts.feeder.end();
    await Promise.all(this.#servingLoops.map((loop) => loop.stop()));
    this.#servingLoops = [];
    this.#parts.waiters.wakeAll();
  }

  async #beginLeading(): Promise<void> {
    const { feeder, queues } = this.#parts;
    if (!this.#isServing) await this.#prepare();
    this.leadership.lead(() => this.#turn?.holds() === true);
    await this.#rebuild();
    // What a process committed and died before it could tell.
    await queues.refresh();
    await feeder.fill();
    this.#startServing();
    feeder.discoverSoon();
    this.#startLeading();
  }

  #startLeading(): void {
    const { alerts, checkpoints, lostEntries, patterns, retention, sampling, sweeper } =
      this.#parts;
    const { mode, settings } = this.#context;
    const walking = this.#whileLeading(() => lostEntries.tick());
    lostEntries.begin(() => {
      walking.wake();
    });
    const classifying = this.#whileLeading(() => patterns.tick());
    patterns.begin(() => {
      classifying.wake();
    });
    const upkeep = new CounterUpkeep(this.#context);
    const check = new AdmissionCheck(this.#context);
    this.#leadingLoops = [
      walking,
      classifying,
      this.#whileLeading(() => sweeper.tick()),
      this.#whileLeading(() => retention.tick(), settings.retentionIntervalMs),
      this.#whileLeading(() => checkpoints.tick()),
      this.#whileLeading(() => upkeep.tick()),
      this.#whileLeading(() => check.tick()),
      this.#whileLeading(() => sampling.tick()),
      mode === 'redis'
        ? this.#loop(() => this.#lookAfter())
        : this.#whileLeading(() => this.#lookAfterOwn()),
    ];
    if (alerts.options !== null) {
      this.#leadingLoops.push(this.#whileLeading(() => alerts.tick()));
    }
    if (mode === 'replicas') this.#leadingLoops.push(this.#whileLeading(() => this.#sweepMail()));
    for (const loop of this.#leadingLoops) loop.start();
  }

  async #endLeading(isLeaving: () => boolean): Promise<void> {
    const { alerts, checkpoints, feeder, sampling } = this.#parts;
    const { mode, replicas } = this.#context;
    feeder.stopFeeding();
    if (mode !== 'replicas') await this.#endServing();
    else if (!isLeaving()) replicas?.follow(null);
    await Promise.all(this.#leadingLoops.map((loop) => loop.stop()));
    this.#leadingLoops = [];
    for (const part of [alerts, sampling]) {
      await part.leave().catch((error: unknown) => {
        this.noteError(error);
      });
    }
    if (mode !== 'redis') await checkpoints.saveFinally(isLeaving);
  }

  /** A lease that could not be renewed may be another's: its ready queue needs what is fed. */
  async #whileServing(tick: () => Promise<number>): Promise<number> {
    const mayTick = this.#context.mode === 'replicas' || this.#turn?.holds() === true;
    return mayTick ? tick() : notServingWaitMs;
  }

  #whileLeading(tick: () => Promise<number>, errorDelayMs?: number): Loop {
    return this.#loop(
      async () => (this.#turn?.holds() === true ? tick() : notServingWaitMs),
      errorDelayMs,
    );
  }

  async #sweepMail(): Promise<number> {
    await sweepLetters(this.#context.db, mailKeptMs);
    return mailSweepMs;
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
