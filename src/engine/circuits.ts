import { attemptErrorCodes, type AttemptError } from '../domain/attempt-error.js';
import { afterTime, answerOf, heedAll, type Circuit, type Ended } from '../domain/circuit.js';
import type { WorkerId } from '../domain/ids.js';
import type { Excuse } from '../domain/retry-policy.js';
import { changeCircuit, type ConfiguredRow } from '../store/queues.js';
import { approximateNow, type EngineContext } from './context.js';
import type { News } from './news.js';
import { PushedBack } from './pushed-back.js';
import type { QueueDirectory } from './queue-directory.js';

const maxStreaks = 10_000;
const maxTries = 5;

interface Succeeded {
  readonly queue: string;
  readonly runMs: number;
}

interface Failed {
  readonly queue: string;
  readonly workerId: WorkerId;
  readonly begunAt: Date;
  readonly error: AttemptError;
}

type EndedIn = Ended & { readonly queue: string };

/** What a circuit becomes; the same one: nothing. */
type Decide = (circuit: Circuit) => Circuit;

export interface CircuitParts {
  readonly queues: QueueDirectory;
  readonly news: News;
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
  /** By queue: attempts in a row, as far as they were reported to this server, that found nobody there. */
  readonly #streaks = new Map<string, number>();
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
    const telling = ended.filter(({ queue }) => this.#isInDoubt(queue));
    if (telling.length === 0) return;
    const nowMs = this.#nowMs();
    await this.#hearAll(
      telling.map(({ queue, runMs }) => {
        return { queue, begunMs: nowMs - runMs, answer: { kind: 'answered' } };
      }),
    );
  }

  /**
   * To be told before their slots are freed: what is taken then would be called in vain. Answers, for
   * each, why it costs nothing; null when it costs what it always does.
   */
  async failed(ended: readonly Failed[]): Promise<(Excuse | null)[]> {
    const excuses = await this.#hearAll(
      ended.map(({ queue, begunAt, error }) => {
        return { queue, begunMs: begunAt.getTime(), answer: answerOf(error) };
      }),
    );
    ended.forEach(({ queue, workerId }, index) => {
      if (excuses[index] !== null) this.#pushedBack.note(queue, workerId);
    });
    return excuses;
  }

  /** How long a worker that asks for work lets others go first; see `PushedBack`. */
  giveWayMs(workerId: WorkerId): number {
    const circuitOf = (queue: string) => this.#parts.queues.circuitOf(queue);
    return this.#pushedBack.giveWayMs(workerId, this.#nowMs(), circuitOf);
  }

  /** While it is known that the service does not answer, that is not the fault of who asked. */
  isOutage(queue: string, error: AttemptError): boolean {
    const isOpen = this.#parts.queues.circuitOf(queue).kind === 'open';
    return isOpen && error.code === attemptErrorCodes.unavailable;
  }

  async #hearAll(ended: readonly EndedIn[]): Promise<(Excuse | null)[]> {
    const excuses = new Map<Ended, Excuse | null>();
    await Promise.all(
      [...byQueue(ended)].map(async ([queue, ends]) => {
        const heard = await this.#carefully(() => this.#hear(queue, ends));
        ends.forEach((end, index) => excuses.set(end, heard?.[index] ?? null));
      }),
    );
    return ended.map((end) => excuses.get(end) ?? null);
  }

  async #hear(queue: string, ended: readonly Ended[]): Promise<readonly (Excuse | null)[]> {
    const streak = this.#streaks.get(queue) ?? 0;
    const nowMs = this.#nowMs();
    let heard = heedAll({ circuit: this.#parts.queues.circuitOf(queue), streak }, ended, nowMs);
    await this.#change(queue, (circuit) => {
      heard = heedAll({ circuit, streak }, ended, nowMs);
      return heard.circuit;
    });
    this.#setStreak(queue, heard.streak);
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
    const { log } = this.#context;
    switch (circuit.kind) {
      case 'open': {
        const { reason, trips, untilMs } = circuit;
        const told = { queue: name, reason, trips, until: new Date(untilMs) };
        if (before.kind !== 'open' || before.trips !== trips) {
          log.warn(told, 'the service of a queue pushes back; nothing of it is taken for now');
        } else log.debug(told, 'the service of a queue is tried again');
        return;
      }
      case 'recovering':
        log.info({ queue: name, step: circuit.step }, 'the service of a queue answers again');
        return;
      case 'closed':
        log.info({ queue: name }, 'the service of a queue has recovered');
    }
  }

  #isInDoubt(queue: string): boolean {
    return this.#streaks.has(queue) || this.#parts.queues.circuitOf(queue).kind !== 'closed';
  }

  #setStreak(queue: string, streak: number): void {
    this.#streaks.delete(queue);
    if (streak === 0) return;
    this.#streaks.set(queue, streak);
    if (this.#streaks.size <= maxStreaks) return;
    for (const oldest of this.#streaks.keys()) {
      this.#streaks.delete(oldest);
      return;
    }
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
