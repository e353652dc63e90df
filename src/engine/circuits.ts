import { isDenial, isPushBack, type AttemptError } from '../domain/attempt-error.js';
import {
  afterTime,
  answerOf,
  closed,
  heedAll,
  type Answer,
  type Circuit,
  type Ended,
  type Standing,
} from '../domain/circuit.js';
import type { TaskId, WorkerId } from '../domain/ids.js';
import { forgotten, isEmpty, noRefusals, refusedElsewhere } from '../domain/refusals.js';
import type { Excuse } from '../domain/retry-policy.js';
import { becameOf } from '../domain/pushback.js';
import { changeCircuit, type ConfiguredRow } from '../store/queues.js';
import { approximateNow, type EngineContext } from './context.js';
import type { Item, News } from './news.js';
import type { PushbackLedger } from './pushback-ledger.js';
import { PushedBack } from './pushed-back.js';
import type { QueueDirectory } from './queue-directory.js';

const maxQueues = 10_000;
const maxTries = 5;

interface Succeeded {
  readonly taskId: TaskId;
  readonly queue: string;
  readonly runMs: number;
}

interface Failed {
  readonly taskId: TaskId;
  readonly queue: string;
  readonly taskType: string;
  readonly workerId: WorkerId;
  readonly begunAt: Date;
  readonly error: AttemptError;
}

/** What is remembered of a queue, as far as it was reported to this server. */
type Doubt = Omit<Standing, 'circuit' | 'answeredMs'>;

const noDoubt: Doubt = { streak: 0, refusals: noRefusals };

type EndedIn = Ended & { readonly queue: string };

/** What a circuit becomes; the same one: nothing. */
type Decide = (circuit: Circuit) => Circuit;

export interface CircuitParts {
  readonly queues: QueueDirectory;
  readonly news: News;
  readonly pushbacks: PushbackLedger;
  /** It was closed, and the failures that opened it are nobody's fault. */
  readonly onOpened: (queue: string) => void;
}

/**
 * Stops a queue whose service pushes back, tries whether it answers again, and lets it go on gently. The
 * truth is the queue's row: whichever server sees a reason changes it by compare-and-set, and no leader
 * is needed. Nothing here may fail a report.
 */
export class Circuits {
  readonly #context: EngineContext;
  readonly #parts: CircuitParts;
  /** By queue, those that have any: failures in a row, and tasks that were refused. */
  readonly #doubts = new Map<string, Doubt>();
  readonly #answeredMs = new Map<string, number>();
  readonly #pushedBack = new PushedBack();

  constructor(context: EngineContext, parts: CircuitParts) {
    this.#context = context;
    this.#parts = parts;
  }

  /** Recovers step by step, and lets new probes go in place of those that came to nothing. */
  async tick(): Promise<number> {
    for (const { name } of this.#parts.queues.troubled()) {
      const decide: Decide = (circuit) => afterTime(circuit, this.#nowMs());
      await this.#carefully(() => this.#change(name, decide));
    }
    return this.#context.settings.sweepIntervalMs;
  }

  /** Costs a look into memory while all is well. */
  async succeeded(ended: readonly Succeeded[]): Promise<void> {
    const nowMs = this.#nowMs();
    const telling = ended.filter(({ queue }) => {
      this.#noteAnswered(queue, nowMs);
      return this.#isInDoubt(queue);
    });
    if (telling.length === 0) return;
    await this.#hearAll(
      telling.map(({ taskId, queue, runMs }) => {
        return { taskId, queue, begunMs: nowMs - runMs, answer: { kind: 'answered' } };
      }),
    );
  }

  /**
   * To be told before their slots are freed: what is taken then would be called in vain. Answers, for
   * each, why it costs nothing; null when it costs what it always does.
   */
  async failed(ended: readonly Failed[]): Promise<(Excuse | null)[]> {
    const before = ended.map(({ queue }) => this.#parts.queues.circuitOf(queue));
    const excuses = await this.#hearAll(
      ended.map(({ taskId, queue, begunAt, error }) => {
        return { taskId, queue, begunMs: begunAt.getTime(), answer: answerOf(error) };
      }),
    );
    ended.forEach((attempt, index) => {
      this.#writeDown(attempt, before[index] ?? closed);
    });
    ended.forEach(({ queue, workerId, taskId, error }, index) => {
      if (excuses[index] !== null) this.#pushedBack.note(queue, workerId);
      const isOpen = this.#parts.queues.circuitOf(queue).kind === 'open';
      if (isRefused(answerOf(error)) && !isOpen)
        this.#parts.news.tell({ kind: 'refused', queue, taskId });
    });
    return excuses;
  }

  /** By the service, as another server was told. */
  heardRefused({ queue, taskId }: Item & { kind: 'refused' }): void {
    const doubt = this.#doubts.get(queue) ?? noDoubt;
    const answeredMs = this.#answeredMs.get(queue) ?? null;
    const nowMs = this.#nowMs();
    const refusals = refusedElsewhere(doubt.refusals, { taskId, nowMs, answeredMs });
    this.#setDoubt(queue, { ...doubt, refusals });
  }

  /** What was remembered of a task that has ended as a dead letter. */
  forget(queue: string, taskId: TaskId): void {
    const doubt = this.#doubts.get(queue);
    if (doubt === undefined) return;
    this.#setDoubt(queue, { ...doubt, refusals: forgotten(doubt.refusals, taskId) });
  }

  /** How long a worker that asks for work lets others go first; see `PushedBack`. */
  giveWayMs(workerId: WorkerId): number {
    const circuitOf = (queue: string) => this.#parts.queues.circuitOf(queue);
    return this.#pushedBack.giveWayMs(workerId, this.#nowMs(), circuitOf);
  }

  /** While it is known that the service does not answer, that is not the fault of who asked. */
  isOutage(queue: string, error: AttemptError): boolean {
    const isOpen = this.#parts.queues.circuitOf(queue).kind === 'open';
    return isOpen && (isPushBack(error.code) || isDenial(error.code));
  }

  /** For people to read, when the service wants no calls for now. */
  #writeDown({ queue, taskId, taskType, workerId, error }: Failed, before: Circuit): void {
    const answer = answerOf(error);
    if (answer === null || answer.kind === 'answered') return;
    const became = becameOf(before, this.#parts.queues.circuitOf(queue));
    const about = { queue, taskId, taskType, workerId, error, ...became };
    this.#parts.pushbacks.note({ ...about, atMs: this.#nowMs() });
  }

  async #hearAll(ended: readonly EndedIn[]): Promise<(Excuse | null)[]> {
    const excuses = new Map<Ended, Excuse | null>();
    await Promise.all(
      [...byQueue(ended)].map(async ([queue, ends]) => {
        const heard = await this.#carefully(() => this.#hear(queue, ends));
        ends.forEach((end, index) => {
          excuses.set(end, heard === null ? excuseUnheard(end) : (heard[index] ?? null));
        });
      }),
    );
    return ended.map((end) => excuses.get(end) ?? null);
  }

  async #hear(queue: string, ended: readonly Ended[]): Promise<readonly (Excuse | null)[]> {
    const known = this.#doubts.get(queue) ?? noDoubt;
    const answeredMs = this.#answeredMs.get(queue) ?? null;
    const nowMs = this.#nowMs();
    const hear = (circuit: Circuit) => heedAll({ ...known, circuit, answeredMs }, ended, nowMs);
    const circuitNow = this.#parts.queues.circuitOf(queue);
    let heard = hear(circuitNow);
    // Without a pause while there is nothing to write: other reports of this queue may come meanwhile.
    if (heard.circuit !== circuitNow) {
      await this.#change(queue, (circuit) => {
        heard = hear(circuit);
        return heard.circuit;
      });
    }
    this.#setDoubt(queue, heard);
    if (heard.answeredMs !== null) this.#noteAnswered(queue, heard.answeredMs);
    return heard.excuses;
  }

  async #change(name: string, decide: Decide): Promise<void> {
    const { queues } = this.#parts;
    const known = queues.circuitOf(name);
    if (decide(known) === known) return;
    let row = queues.find(name) ?? (await queues.readAgain(name));
    for (let tries = 0; tries < maxTries; tries += 1) {
      const next = decide(row.circuit);
      if (next === row.circuit) return;
      if (await this.#write(row, next)) return;
      row = await queues.readAgain(name);
    }
  }

  /** False: somebody else was quicker. */
  async #write(before: ConfiguredRow, next: Circuit): Promise<boolean> {
    const { queues, news, onOpened } = this.#parts;
    const { name, version } = before;
    const isNew = before.circuit.kind === 'closed' && next.kind === 'open';
    const circuit = isNew ? { ...next, slots: await this.#runningIn(name) } : next;
    const row = await changeCircuit(this.#context.db, name, version, circuit);
    if (row === null) return false;
    if (isNew) onOpened(name);
    await queues.queueChanged(row);
    news.tell({ kind: 'configured' });
    this.#log(before.circuit, row);
    return true;
  }

  /** Unknown while the ready queue is away: recovery then begins with a single slot. */
  async #runningIn(queue: string): Promise<number> {
    try {
      return (await this.#context.ready.live(queue)).running;
    } catch {
      return 0;
    }
  }

  #log(before: Circuit, { name, circuit }: ConfiguredRow): void {
    const { log, transitions } = this.#context;
    switch (circuit.kind) {
      case 'open': {
        const { reason, trips, untilMs } = circuit;
        const told = { queue: name, reason, trips, until: new Date(untilMs) };
        if (before.kind !== 'open' || before.trips !== trips) {
          transitions?.event('circuit opened: no task of this queue is taken', reason, told);
        } else log.debug(told, 'circuit is open: its service is tried again');
        return;
      }
      case 'recovering': {
        const told = { queue: name, step: circuit.step };
        transitions?.event('circuit half-open: the service answers', 'recovering', told, 'info');
        return;
      }
      case 'closed':
        transitions?.event('circuit closed', 'closed', { queue: name }, 'info');
    }
  }

  #isInDoubt(queue: string): boolean {
    return this.#doubts.has(queue) || this.#parts.queues.circuitOf(queue).kind !== 'closed';
  }

  #setDoubt(queue: string, { streak, refusals }: Doubt): void {
    this.#doubts.delete(queue);
    if (streak === 0 && isEmpty(refusals)) return;
    this.#doubts.set(queue, { streak, refusals });
    if (this.#doubts.size <= maxQueues) return;
    for (const oldest of this.#doubts.keys()) {
      this.#doubts.delete(oldest);
      return;
    }
  }

  #noteAnswered(queue: string, nowMs: number): void {
    if (this.#answeredMs.size >= maxQueues && !this.#answeredMs.has(queue)) {
      this.#answeredMs.clear();
    }
    this.#answeredMs.set(queue, nowMs);
  }

  /** Null when Postgres or the ready queue did not answer: the next report, or tick, tries again. */
  async #carefully<T>(work: () => Promise<T>): Promise<T | null> {
    try {
      return await work();
    } catch (error) {
      this.#context.log.warn({ err: error }, 'could not change the circuit of a queue');
      return null;
    }
  }

  #nowMs(): number {
    return approximateNow(this.#context).getTime();
  }
}

function byQueue(ended: readonly EndedIn[]): Map<string, EndedIn[]> {
  const found = new Map<string, EndedIn[]>();
  for (const end of ended) {
    const others = found.get(end.queue);
    if (others === undefined) found.set(end.queue, [end]);
    else others.push(end);
  }
  return found;
}

/** The judgement could not be made: what could be the service's fault costs nothing. */
function excuseUnheard({ answer }: Ended): Excuse | null {
  return isRefused(answer) ? { restMs: 0 } : null;
}

function isRefused(answer: Answer | null): boolean {
  return answer?.kind === 'rate_limited' || answer?.kind === 'quota_exhausted';
}
