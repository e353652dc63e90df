import { SluiceError } from '../domain/errors.js';
import type { Cost } from '../domain/queue-settings.js';
import type { ClaimedTask, Held, Report } from '../protocol/workers-api.js';
import type { Logger } from '../runtime/log.js';
import type { AttemptLog } from './attempt-log.js';
import { TaskAbortedError } from './errors.js';
import { execute, type Outcome } from './execution.js';
import type { TaskHandler } from './handler.js';
import type { InFlight } from './in-flight.js';
import { tell, type WorkerObserver } from './observer.js';
import type { PressureGauge } from './pressure.js';
import { ProgressLine, type ProgressNote } from './progress.js';
import type { Reports } from './reports.js';
import { isPushBack } from '../domain/attempt-error.js';
import type { Session } from './session.js';
import type { Slots } from './slots.js';
import { Stop } from './stop.js';
import { TaskContext } from './task-context.js';
import type { AttemptTrace, AttemptTracing } from './tracing.js';
import { checkedUsage } from './usage.js';

export interface RunnerOptions {
  readonly handlers: ReadonlyMap<string, TaskHandler>;
  readonly session: Session;
  readonly slots: Slots;
  readonly inFlight: InFlight;
  readonly reports: Reports;
  readonly attempts: AttemptLog;
  readonly pressure: PressureGauge;
  readonly observer: WorkerObserver | undefined;
  readonly tracing: AttemptTracing | undefined;
  readonly log: Logger;
}

interface Running {
  readonly task: ClaimedTask;
  readonly stop: Stop;
}

/** What an attempt took, whatever became of it. */
interface Spent {
  readonly seconds: number;
  readonly usage: Cost | null;
  readonly trace: AttemptTrace | null;
}

/**
 * Gives each claimed task a slot, its handler, and a way to be told to stop. The slot is taken until
 * the handler has really ended, or its timeout came: one that ignores that its lease was lost, or its
 * task cancelled, still uses what the slots are there to share out.
 */
export class Runner {
  readonly #options: RunnerOptions;
  #failuresInARow = 0;

  constructor(options: RunnerOptions) {
    this.#options = options;
  }

  /** Attempts, up to the last one that ended here. */
  get failuresInARow(): number {
    return this.#failuresInARow;
  }

  begin(tasks: readonly ClaimedTask[]): void {
    const { slots, inFlight } = this.#options;
    const begun = tasks.map((task) => ({ task, stop: new Stop() }));
    for (const running of begun) {
      slots.take();
      inFlight.add(running);
    }
    // Those that came together have all begun before the first handler runs.
    queueMicrotask(() => {
      for (const running of begun) this.#run(running);
    });
  }

  /** Without a promise where the handler needs none: each costs as much as a short handler. */
  #run({ task, stop }: Running): void {
    const { handlers, session, tracing, attempts, log } = this.#options;
    attempts.started(task);
    const handler = handlers.get(task.taskType) ?? missingHandler(task.taskType);
    const progress = new ProgressLine((note) => this.#sendProgress(task, note, stop));
    const context = new TaskContext(task, stop, progress, log);
    const trace =
      tracing === undefined
        ? null
        : tell(log, () => tracing.begin(context.task, session.terms.workerId));
    const startedAt = performance.now();
    const end = (outcome: Outcome) => {
      progress.close();
      const seconds = (performance.now() - startedAt) / 1000;
      const found = trace === null ? null : tell(log, () => usageFound(trace, outcome));
      this.#end(task, outcome, { seconds, usage: context.used ?? found, trace });
    };
    const assignment = { task, handler, context, stop };
    const ending = trace === null ? execute(assignment) : trace.run(() => execute(assignment));
    if (ending instanceof Promise) void ending.then(end);
    else end(ending);
  }

  /** First the report, then the slot: both are on their way before anything else happens. */
  #end(task: ClaimedTask, outcome: Outcome, spent: Spent): void {
    const { slots, pressure, observer, log } = this.#options;
    if (outcome.kind === 'completed') this.#failuresInARow = 0;
    else if (outcome.kind === 'failed') this.#failuresInARow += 1;
    if (isPushedBack(outcome)) {
      // Before the server has heard of a push-back it would send the next task the same way.
      slots.giveBackAfter(new Promise<void>((heard) => this.#settle(task, outcome, spent, heard)));
    } else {
      this.#settle(task, outcome, spent);
      slots.giveBack();
    }
    pressure.noteDuration(spent.seconds * 1000);
    tell(log, () => observer?.ended(task.taskType, outcome.kind, spent.seconds));
  }

  /** `heard` is called when the server has answered, or will not; at once when there is nothing to say. */
  #settle(
    task: ClaimedTask,
    outcome: Outcome,
    spent: Spent,
    heard: () => void = () => undefined,
  ): void {
    const { inFlight, reports, attempts, log } = this.#options;
    const { trace } = spent;
    const abandoned = outcome.kind === 'abandoned' ? outcome.why : null;
    // What a drain cut short stays listed until the drain gives it back.
    if (abandoned === 'drain' || !inFlight.remove(task.lease)) heard();
    else if (outcome.kind !== 'abandoned') {
      const settled = trace === null ? null : tell(log, () => trace.settling());
      reports.send(toReport(task, outcome, spent), (answer) => {
        if (settled !== null) tell(log, () => settled(answer));
        if (outcome.kind === 'failed') attempts.failed(task, spent.seconds, outcome.error, answer);
        else if (answer?.accepted === true) attempts.completed(task, spent.seconds);
        heard();
      });
    } else if (abandoned === 'cancelled') void this.#letGo(task).then(heard);
    else heard();
  }

  /** A cancelled member keeps its workflow waiting until its worker has let go of it. */
  async #letGo({ taskId, lease }: ClaimedTask): Promise<void> {
    const { session, log } = this.#options;
    try {
      await session.call((workerId) => session.api.release(workerId, [{ taskId, lease }]));
    } catch (error) {
      log.debug({ task_id: taskId, err: error }, 'not told that a cancelled task has stopped');
    }
  }

  async #sendProgress(task: Held, note: ProgressNote, stop: Stop): Promise<void> {
    const { session, log } = this.#options;
    const { taskId, lease } = task;
    try {
      await session.call((workerId) => session.api.progress(workerId, { taskId, lease }, note));
    } catch (error) {
      const isLost = error instanceof SluiceError && error.code === 'lease_lost';
      if (isLost) stop.abort(new TaskAbortedError('lease_lost'));
      else log.warn({ task_id: taskId, err: error }, 'its progress was not taken');
    }
  }
}

function isPushedBack(outcome: Outcome): boolean {
  return outcome.kind === 'failed' && isPushBack(outcome.error.code);
}

function toReport(
  { taskId, lease }: Held,
  outcome: Exclude<Outcome, { kind: 'abandoned' }>,
  { seconds: executionDurationSeconds, usage }: Spent,
): Report {
  const report: Report =
    outcome.kind === 'completed'
      ? { taskId, lease, executionDurationSeconds, status: 'completed', result: outcome.result }
      : { taskId, lease, executionDurationSeconds, status: 'failed', error: outcome.error };
  return usage === null ? report : { ...report, usage };
}

/** What the server would refuse is not reported. */
function usageFound(trace: AttemptTrace, outcome: Outcome): Cost | null {
  const found = trace.ended(outcome);
  return found === null ? null : checkedUsage(found);
}

/** Only a server that does not honour the types this worker registered sends such a task. */
function missingHandler(type: string): TaskHandler {
  return {
    type,
    run: () => {
      throw Object.assign(new Error(`This worker has no handler for ${type}`), {
        code: 'NO_HANDLER',
      });
    },
  };
}
