import { SluiceError } from '../domain/errors.js';
import type { TaskId, WorkerId } from '../domain/ids.js';
import type { RateLimit } from '../domain/queue-settings.js';
import * as api from '../protocol/api.js';
import type { TaskEvent } from '../protocol/events.js';
import { Loop } from '../runtime/loop.js';
import { DatabaseAwayError } from '../store/database.js';
import { analyseDeadLetters, listDeadLetters } from '../store/dead-letters.js';
import { listTasks } from '../store/list-tasks.js';
import { findWorker, listWorkers, requestDrain } from '../store/workers.js';
import { ApiKeys } from './api-keys.js';
import { Admission } from './admission.js';
import { AdmissionCheck } from './admission-check.js';
import { AttemptControl } from './attempt-control.js';
import { Bench } from './bench.js';
import { Cancel } from './cancel.js';
import { Checkpoints } from './checkpoints.js';
import { Circuits } from './circuits.js';
import { Claim } from './claim.js';
import { asRefusal, instant, type EngineContext } from './context.js';
import { EndAttempts } from './end-attempts.js';
import { Explain } from './explain.js';
import { Feeder } from './feeder.js';
import { Fleet } from './fleet.js';
import { Health } from './health.js';
import { Heartbeat } from './heartbeat.js';
import { Line } from './line.js';
import { LostEntries } from './lost-entries.js';
import { News } from './news.js';
import { Poll } from './poll.js';
import { PollWaiters } from './poll-waiters.js';
import { QueueControl } from './queue-control.js';
import { QueueDirectory } from './queue-directory.js';
import { Read } from './read.js';
import { rebuild, type Rebuilt } from './rebuild.js';
import { RecentWork } from './recent-work.js';
import { Replay } from './replay.js';
import { Report } from './report.js';
import { Retention } from './retention.js';
import { Scaler } from './scaler.js';
import { ServingTurn } from './serving-turn.js';
import { Slots } from './slots.js';
import { getStatistics } from './statistics.js';
import { Submit } from './submit.js';
import { Hearing, Sweeper } from './sweeper.js';
import { Throughput } from './throughput.js';
import { WakeRelay } from './wake-relay.js';
import { WorkerJudge } from './worker-judge.js';

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
const rebuildRetryMs = 100;
const notServingWaitMs = 200;

/** The use cases, joined: everything that can be asked of Sluice, in this process. */
export class Engine implements api.SluiceApi {
  /** Who may call over HTTP. Whoever serves it has them watched. */
  readonly keys: ApiKeys;
  readonly #context: EngineContext;
  readonly #queues: QueueDirectory;
  readonly #throughput = new Throughput();
  readonly #waiters: PollWaiters;
  readonly #hearing: Hearing;
  readonly #fleet: Fleet;
  readonly #bench: Bench;
  readonly #slots: Slots;
  readonly #checkpoints: Checkpoints;
  readonly #circuits: Circuits;
  readonly #news: News;
  readonly #feeder: Feeder;
  readonly #admission: Admission;
  readonly #submit: Submit;
  readonly #poll: Poll;
  readonly #report: Report;
  readonly #attempts: AttemptControl;
  readonly #heartbeat: Heartbeat;
  readonly #cancel: Cancel;
  readonly #replay: Replay;
  readonly #read: Read;
  readonly #explain: Explain;
  readonly #queueControl: QueueControl;
  readonly #line: Line;
  readonly #health: Health;
  /** How many workers there should be, for whoever starts them. */
  readonly scaler: Scaler;
  readonly #turn: ServingTurn | null;
  readonly #sweeper: Sweeper;
  readonly #lostEntries: LostEntries;
  #turnLoop: Loop | null = null;
  /** Run only while this process serves. */
  #servingLoops: Loop[] = [];
  #rebuilding: Promise<Rebuilt> | null = null;
  #closing: Promise<void> | null = null;

  constructor(context: EngineContext, role: Role, onStandby: (message: string) => void) {
    this.#context = context;
    this.keys = new ApiKeys(context, (error) => {
      this.#noteError(error);
    });
    const relay = new WakeRelay(context.ready);
    this.#waiters = new PollWaiters(context.settings.wakeOrder, (wake) => relay.add(wake));
    this.#checkpoints = new Checkpoints(context);
    this.#queues = new QueueDirectory(context, this.#checkpoints);
    this.#hearing = new Hearing(context);
    this.#fleet = new Fleet(context);
    this.#bench = new Bench(context, (workerId) => {
      this.#waiters.wakeIfDenied(workerId);
    });
    this.#slots = new Slots(context);
    this.#news = new News(context, {
      fleet: this.#fleet,
      waiters: this.#waiters,
      queues: this.#queues,
      bench: this.#bench,
      onBenched: (item) => {
        judge.heardBenched(item);
      },
      onFailing: (item) => {
        judge.heardFailing(item);
      },
    });
    const judge = new WorkerJudge(context, this.#bench, this.#news);
    this.#circuits = new Circuits(context, {
      queues: this.#queues,
      news: this.#news,
      onOpened: (queue) => {
        judge.forgive(queue);
      },
    });
    const recent = new RecentWork();
    this.#feeder = new Feeder(context, this.#queues, recent);
    const endAttempts = new EndAttempts(context, this.#feeder, this.#slots);
    this.#admission = new Admission(context, this.#queues);
    const claim = new Claim(context, { slots: this.#slots, recent, waiters: this.#waiters });
    this.#submit = new Submit(context, {
      recent,
      claim,
      admission: this.#admission,
      feeder: this.#feeder,
      queues: this.#queues,
      throughput: this.#throughput,
      isServing: () => this.notServing() === null,
    });
    this.#report = new Report(context, {
      endAttempts,
      feeder: this.#feeder,
      slots: this.#slots,
      judge,
      circuits: this.#circuits,
      recent,
    });
    this.#attempts = new AttemptControl(context, endAttempts, this.#feeder);
    this.#heartbeat = new Heartbeat(context, {
      fleet: this.#fleet,
      endAttempts,
      news: this.#news,
    });
    this.#cancel = new Cancel(context, {
      fleet: this.#fleet,
      news: this.#news,
      feeder: this.#feeder,
      slots: this.#slots,
    });
    this.#replay = new Replay(context, this.#feeder);
    this.#read = new Read(context);
    this.#explain = new Explain(context, this.#read);
    this.#health = new Health(context, this.#explain);
    this.#line = new Line(context);
    this.scaler = new Scaler(context, {
      queues: this.#queues,
      throughput: this.#throughput,
      notServing: () => this.notServing(),
    });
    this.#queueControl = new QueueControl(context, {
      admission: this.#admission,
      queues: this.#queues,
      line: this.#line,
      throughput: this.#throughput,
      news: this.#news,
    });
    this.#lostEntries = new LostEntries(context, this.#feeder, this.#throughput);
    this.#sweeper = new Sweeper(context, {
      endAttempts,
      feeder: this.#feeder,
      lostEntries: this.#lostEntries,
      news: this.#news,
      hearing: this.#hearing,
      slots: this.#slots,
      retention: new Retention(context, this.#feeder),
    });
    this.#poll = new Poll(context, {
      fleet: this.#fleet,
      bench: this.#bench,
      giveWayMs: (workerId) => this.#circuits.giveWayMs(workerId),
      claim,
      feeder: this.#feeder,
      waiters: this.#waiters,
      notServing: () => this.notServing(),
      release: (held) => this.#attempts.release(held),
      rebuild: () => {
        this.#rebuild().catch((error: unknown) => {
          this.#noteError(error);
        });
      },
    });
    this.#turn =
      role === 'submit'
        ? null
        : new ServingTurn(context, {
            begin: () => this.#beginServing(),
            end: (isLeaving) => this.#endServing(isLeaving),
            onStandby,
          });
    context.events.subscribe((event) => {
      this.#throughput.note(event);
    });
    context.ready.onWake((wake) => this.#waiters.wake(wake));
  }

  /** Resolves when this process serves, or knows that it has to stand by. */
  async begin(): Promise<void> {
    await this.#sweeper.upkeep();
    const turn = this.#turn;
    if (turn === null) return;
    await turn.first();
    await turn.begun();
    this.#turnLoop = this.#loop(() => turn.tick());
    this.#turnLoop.start();
  }

  /** Null while this process hands out work; else why it does not. */
  notServing(): string | null {
    if (this.#closing !== null) return 'This process is closing.';
    if (this.#turn === null) return 'This process only submits and reads.';
    return this.#turn.isServing() ? null : 'This process stands by; another one serves.';
  }

  /** Not null: servers of the other kind, with or without Redis, serve this database. */
  mixture(): string | null {
    return this.#turn?.mixture ?? null;
  }

  databaseTrouble(): Promise<string | null> {
    return this.#health.databaseTrouble();
  }

  /** While it is not null, tasks are accepted and reported, and none is handed out. */
  readyQueueTrouble(): string | null {
    return this.#context.ready.trouble();
  }

  /** Null also while another process serves: it claims, and knows better. */
  async stuckTask(): Promise<api.Explanation | null> {
    return this.notServing() === null ? this.#health.stuckTask() : null;
  }

  /** How many submits were refused since this process began, by reason. */
  refused(): Readonly<Record<string, number>> {
    return this.#submit.refused();
  }

  subscribe(listener: (event: TaskEvent) => void): () => void {
    return this.#context.events.subscribe(listener);
  }

  /** Resolves when nothing of it runs any more; waiting polls are answered. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#waiters.wakeAll();
    await this.keys.stop();
    await this.#turnLoop?.stop();
    await this.#turn?.leave().catch((error: unknown) => {
      this.#noteError(error);
    });
    this.#news.close();
    await this.#context.closeLinks();
    await this.#context.db.close();
  }

  async #beginServing(): Promise<void> {
    this.#hearing.lost();
    // Others may have buried a worker meanwhile; the rows know.
    this.#fleet.clear();
    await this.#bench.refresh();
    await this.#rebuild();
    // What a process committed and died before it could tell.
    await this.#queues.tellAll();
    await this.#feeder.fill();
    const feeding = this.#loop(() => this.#whileServing(() => this.#feeder.tick()));
    this.#feeder.begin(() => {
      feeding.wake();
    });
    const sweeping = this.#loop(() => this.#whileServing(() => this.#sweeper.tick()));
    const walking = this.#loop(() => this.#whileServing(() => this.#lostEntries.tick()));
    this.#lostEntries.begin(() => {
      walking.wake();
    });
    const refreshing = this.#loop(async () => {
      await this.#queues.refresh();
      return queueRefreshMs;
    });
    const recalling = this.#loop(async () => {
      this.#fleet.forgetSilent();
      await this.#bench.refresh();
      return benchRefreshMs;
    });
    const recording = this.#loop(() => this.#whileServing(() => this.#checkpoints.tick()));
    const settling = this.#loop(() => this.#whileServing(() => this.#circuits.tick()));
    const lookingAfter = this.#loop(() => this.#lookAfter());
    const check = new AdmissionCheck(this.#context);
    const comparing = this.#loop(() => this.#whileServing(() => check.tick()));
    this.#servingLoops = [feeding, sweeping, walking, refreshing, recalling, recording, settling];
    this.#servingLoops.push(comparing);
    if (this.#context.mode === 'redis') this.#servingLoops.push(lookingAfter);
    for (const loop of this.#servingLoops) loop.start();
  }

  /** A turn that could not be renewed may be another's: its ready queue needs what is fed. */
  async #whileServing(tick: () => Promise<number>): Promise<number> {
    return this.#turn?.holds() === true ? tick() : notServingWaitMs;
  }

  async #endServing(isLeaving: boolean): Promise<void> {
    this.#feeder.end();
    await Promise.all(this.#servingLoops.map((loop) => loop.stop()));
    this.#servingLoops = [];
    this.#waiters.wakeAll();
    if (isLeaving && this.#context.mode === 'memory') await this.#checkpoints.saveFinally();
  }

  /** The ready queue may be lost while nobody polls, and be back without its contents. */
  async #lookAfter(): Promise<number> {
    return (await this.#rebuild()) === 'closed' ? rebuildRetryMs : lookAfterMs;
  }

  #rebuild(): Promise<Rebuilt> {
    this.#rebuilding ??= rebuild(this.#context, this.#queues, this.#checkpoints)
      .then((rebuilt) => {
        if (rebuilt === 'anew') {
          this.#feeder.discoverSoon();
          this.#waiters.lookAgain();
        }
        return rebuilt;
      })
      .finally(() => {
        this.#rebuilding = null;
      });
    return this.#rebuilding;
  }

  #loop(tick: () => Promise<number>): Loop {
    return new Loop({
      tick,
      onError: (error) => {
        this.#noteError(error);
      },
    });
  }

  #noteError(error: unknown): void {
    if (error instanceof DatabaseAwayError) {
      this.#hearing.lost();
      this.#context.log.warn({ err: error }, 'Postgres cannot be reached; trying again');
    } else {
      this.#context.log.error({ err: error }, 'a background tick failed; trying again');
    }
  }

  async submit(draft: api.TaskDraft, caller = api.anybody): Promise<api.Receipt> {
    const receipt = await refusing(this.#submit.submit(draft, caller));
    this.#context.payloads?.submitted([draft], [{ kind: 'accepted', receipt }]);
    return receipt;
  }

  async submitMany(
    drafts: readonly api.TaskDraft[],
    caller = api.anybody,
  ): Promise<readonly api.SubmitOutcome[]> {
    const outcomes = await refusing(this.#submit.submitMany(drafts, caller));
    this.#context.payloads?.submitted(drafts, outcomes);
    return outcomes;
  }

  getTask(taskId: TaskId, options?: { readonly history?: boolean }): Promise<api.TaskView> {
    return refusing(this.#read.getTask(taskId, options?.history === true));
  }

  waitForTask(taskId: TaskId, timeoutMs: number, signal?: AbortSignal): Promise<api.TaskView> {
    return refusing(this.#read.waitForTask(taskId, timeoutMs, signal));
  }

  explainTask(taskId: TaskId): Promise<api.Explanation> {
    return refusing(this.#explain.explainTask(taskId));
  }

  listTasks(filter: api.TaskFilter, page: api.PageRequest = {}): Promise<api.Page<api.TaskView>> {
    return refusing(listTasks(this.#context.db, filter, page, instant(this.#context)));
  }

  cancelTask(taskId: TaskId): Promise<api.Cancellation> {
    return refusing(this.#cancel.cancelTask(taskId));
  }

  cancelTasks(filter: api.TaskFilter): Promise<{ readonly cancelled: number }> {
    return refusing(this.#cancel.cancelTasks(filter));
  }

  async changeTask(
    taskId: TaskId,
    change: Parameters<api.TaskApi['changeTask']>[1],
  ): Promise<api.TaskView> {
    await refusing(this.#replay.changeTask(taskId, change));
    return this.getTask(taskId);
  }

  async replayTask(taskId: TaskId, request: api.ReplayRequest = {}): Promise<api.TaskView> {
    await refusing(this.#replay.replayTask(taskId, request));
    return this.getTask(taskId);
  }

  listQueues(page: api.PageRequest = {}): Promise<api.Page<api.QueueView>> {
    return refusing(this.#queueControl.listQueues(page));
  }

  getQueue(name: string): Promise<api.QueueView> {
    return refusing(this.#queueControl.getQueue(name));
  }

  putQueue(name: string, change: api.QueueChange): Promise<api.QueueView> {
    return refusing(this.#queueControl.putQueue(name, change));
  }

  pauseQueue(name: string, until?: Date): Promise<api.QueueView> {
    return refusing(this.#queueControl.pauseQueue(name, until));
  }

  resumeQueue(name: string): Promise<api.QueueView> {
    return refusing(this.#queueControl.resumeQueue(name));
  }

  listLimits(): Promise<readonly api.LimitView[]> {
    return refusing(this.#queueControl.listLimits());
  }

  getLimit(name: string): Promise<api.LimitView> {
    return refusing(this.#queueControl.getLimit(name));
  }

  putLimit(name: string, limit: RateLimit): Promise<api.LimitView> {
    return refusing(this.#queueControl.putLimit(name, limit));
  }

  deleteLimit(name: string): Promise<void> {
    return refusing(this.#queueControl.deleteLimit(name));
  }

  getStatistics(): Promise<api.Statistics> {
    return refusing(getStatistics(this.#context, this.#line, this.#throughput, this.#admission));
  }

  getScaling(): Promise<api.Scaling> {
    return refusing(this.scaler.getScaling());
  }

  listDeadLetters(
    filter: api.DeadLetterFilter,
    page: api.PageRequest = {},
  ): ReturnType<api.DeadLetterApi['listDeadLetters']> {
    return refusing(listDeadLetters(this.#context.db, filter, page, instant(this.#context)));
  }

  replayDeadLetters(
    filter: api.DeadLetterFilter,
    request: api.DeadLetterReplay = {},
  ): Promise<api.ReplayedDeadLetters> {
    return refusing(this.#replay.replayDeadLetters(filter, request));
  }

  analyseDeadLetters(): Promise<readonly api.DeadLetterPattern[]> {
    return refusing(analyseDeadLetters(this.#context.db));
  }

  register(registration: api.Registration): Promise<api.Registered> {
    return refusing(this.#fleet.register(registration));
  }

  poll(
    workerId: WorkerId,
    request: api.PollRequest,
    signal?: AbortSignal,
  ): Promise<api.PollAnswer> {
    return refusing(this.#poll.poll(workerId, request, signal));
  }

  start(_workerId: WorkerId, held: api.Held): Promise<void> {
    return this.#attempts.start(held);
  }

  async progress(
    _workerId: WorkerId,
    held: api.Held,
    progress: { readonly percent: number; readonly message?: string },
  ): Promise<void> {
    const { taskId, lease } = held;
    const { percent, message = null } = progress;
    await this.#attempts.progress({ taskId, lease, percent, message });
  }

  async report(
    workerId: WorkerId,
    reports: readonly api.Report[],
  ): Promise<readonly api.ReportAnswer[]> {
    this.#context.payloads?.reported(reports);
    const answers = await this.#report.report(workerId, reports);
    await refusing(this.#attempts.letGo(reports.filter((_, index) => !answers[index]?.accepted)));
    return answers;
  }

  async release(
    workerId: WorkerId,
    held: readonly api.Held[],
  ): ReturnType<api.WorkerApi['release']> {
    const answer = await this.#attempts.release(held);
    this.#bench.giveBack(workerId, answer.released.length);
    return answer;
  }

  heartbeat(workerId: WorkerId, beat: api.Heartbeat): Promise<api.HeartbeatAnswer> {
    return refusing(this.#heartbeat.heartbeat(workerId, beat));
  }

  deregister(workerId: WorkerId): Promise<void> {
    return refusing(this.#heartbeat.deregister(workerId));
  }

  listWorkers(page: api.PageRequest = {}): Promise<api.Page<api.WorkerView>> {
    return refusing(listWorkers(this.#context.db, page));
  }

  async getWorker(workerId: WorkerId): Promise<api.WorkerView> {
    const worker = await refusing(findWorker(this.#context.db, workerId));
    if (worker === null) {
      throw new SluiceError('worker_not_found', `There is no worker ${workerId}.`);
    }
    return worker;
  }

  createKey(draft: api.KeyDraft): Promise<api.CreatedKey> {
    return refusing(this.keys.createKey(draft));
  }

  listKeys(page: api.PageRequest = {}): Promise<api.Page<api.KeyView>> {
    return refusing(this.keys.listKeys(page));
  }

  revokeKey(id: string): Promise<api.KeyView> {
    return refusing(this.keys.revokeKey(id));
  }

  async drainWorker(workerId: WorkerId): Promise<api.WorkerView> {
    const known = await refusing(requestDrain(this.#context.db, workerId));
    if (!known) throw new SluiceError('worker_not_found', `There is no worker ${workerId}.`);
    this.#news.tell({ kind: 'draining', workerId });
    return this.getWorker(workerId);
  }
}

async function refusing<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw asRefusal(error);
  }
}
