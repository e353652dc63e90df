import { closed, probesOf, settingsUnder, type Circuit } from '../domain/circuit.js';
import { defaultQueueSettings, type QueueSettings } from '../domain/queue-settings.js';
import type { Configuration, ConfiguredLimit, ConfiguredQueue } from '../ready/ready-queue.js';
import { findLimitsChanged, findLimitsNamed } from '../store/limits.js';
import { ensureQueues, findConfigured, findQueue, type ConfiguredRow } from '../store/queues.js';
import { findUnsettled, settle } from '../store/unsettled.js';
import type { Checkpoints } from './checkpoints.js';
import { approximateNow, instant, patiently, type EngineContext } from './context.js';
import { pauseLeftMs } from './queue-pause.js';

/** A change that committed late may be older than one already seen. */
const overlapMs = 30_000;
const maxRememberedNames = 100_000;
/** A queue that is in use says so in its row this often: the row of one that is not is purged. */
const nameKnownMs = 3_600_000;

/**
 * The queues that were configured and the limits they share, as last read: Postgres holds the truth,
 * the ready queue is told of it. Any other queue has the defaults, and costs nothing here.
 */
export class QueueDirectory {
  readonly #context: EngineContext;
  readonly #checkpoints: Checkpoints;
  readonly #queues = new Map<string, ConfiguredRow>();
  readonly #limits = new Map<string, ConfiguredLimit>();
  /** Those whose circuit is not closed. */
  readonly #troubled = new Map<string, ConfiguredRow>();
  /** Names that have a row, and when that was last seen to. */
  readonly #names = new Map<string, number>();
  /** The ready queue may lack settings: see `isInDoubt`. Counts what gave reason to think so. */
  #doubts = 0;
  #settledDoubts = 0;
  #settling: Promise<boolean> | null = null;
  #readAtMs: number | null = null;
  #nextWholeMs = -Infinity;

  constructor(context: EngineContext, checkpoints: Checkpoints) {
    this.#context = context;
    this.#checkpoints = checkpoints;
  }

  /** All of it, as the ready queue needs it. */
  configuration(): Configuration {
    return this.#toConfiguration([...this.#limits.values()], [...this.#queues.values()]);
  }

  settingsOf(name: string): QueueSettings {
    return this.#queues.get(name)?.settings ?? defaultQueueSettings;
  }

  circuitOf(name: string): Circuit {
    return this.#troubled.get(name)?.circuit ?? closed;
  }

  /** Queues that somebody configured. */
  configured(): ReadonlySet<string> {
    return new Set(this.#queues.keys());
  }

  /** Those that were configured, as last read. */
  rows(): Iterable<ConfiguredRow> {
    return this.#queues.values();
  }

  /** Queues whose circuit is not closed. */
  troubled(): readonly ConfiguredRow[] {
    return this.#troubled.size === 0 ? [] : [...this.#troubled.values()];
  }

  /** The row as last read; the version of one that was never configured is not known here. */
  find(name: string): ConfiguredRow | null {
    return this.#queues.get(name) ?? null;
  }

  /** The row as it is now: somebody else may have changed it, and have died before it was told. */
  async readAgain(name: string): Promise<ConfiguredRow> {
    await this.ensure([name]);
    const queue = await findQueue(this.#context.db, name);
    if (queue === null) throw new Error(`queue ${name} is gone`);
    if (this.#noteQueue(queue)) await this.queueChanged(queue);
    return queue;
  }

  /**
   * Reads all of it. A change says when its transaction began, not when it committed: one that took
   * longer than the overlap, or was made while the clock of Postgres was behind, is found only so.
   */
  async load(): Promise<void> {
    const nextWholeMs = performance.now() + this.#context.settings.rereadIntervalMs;
    const knownBefore = [...this.#limits.values()];
    const limits = new Set(await this.#read(null));
    for (const { name, version } of knownBefore) {
      if (!limits.has(name)) this.limitDeleted(name, version);
    }
    this.#nextWholeMs = nextWholeMs;
  }

  /** Reads what other processes changed, and settles it. */
  async refresh(): Promise<void> {
    if (this.#readAtMs === null || performance.now() >= this.#nextWholeMs) await this.load();
    else await this.#read(new Date(this.#readAtMs - overlapMs));
    await this.settle();
  }

  /** Answers with the names of the limits that it read. */
  async #read(since: Date | null): Promise<string[]> {
    const { db } = this.#context;
    const readAtMs = db.nowMs();
    // Queues first: whatever limit they use was there before them.
    for (const queue of await findConfigured(db, since)) this.#noteQueue(queue);
    const limits = await findLimitsChanged(db, since);
    for (const limit of limits) this.#noteLimit(limit);
    this.#readAtMs = readAtMs;
    return limits.map(({ name }) => name);
  }

  /** After the commit that changed it. */
  async queueChanged(queue: ConfiguredRow): Promise<void> {
    this.#noteQueue(queue);
    await this.settle();
  }

  async limitChanged(limit: ConfiguredLimit): Promise<void> {
    this.#noteLimit(limit);
    await this.settle();
  }

  /**
   * Tells the ready queue of every change that no server has told it, with the limits that those queues
   * share, and settles them in Postgres: until then it refuses claims of those queues. Versions make it no
   * matter how often and in which order the ready queue is told. False: it could not be told.
   */
  async settle(): Promise<boolean> {
    const { db, ready } = this.#context;
    const doubts = this.#doubts;
    const unsettled = await findUnsettled(db);
    if (unsettled.length > 0) {
      const queues = unsettled.map(({ queue }) => queue);
      // After the queues: whatever limit they use was there before them, and may have changed since.
      const names = [...new Set(queues.flatMap(usedBy))];
      const limits = names.length === 0 ? [] : await findLimitsNamed(db, names);
      for (const queue of queues) this.#noteQueue(queue);
      for (const limit of limits) this.#noteLimit(limit);
      const configuration = this.#toConfiguration(limits, queues);
      await this.#checkpoints.begin(configuration);
      const configured = await ready.configure(configuration);
      if (configured === null) {
        this.doubt();
        return false;
      }
      await patiently(() => settle(db, unsettled, configured));
    }
    this.#settledDoubts = Math.max(this.#settledDoubts, doubts);
    return true;
  }

  /**
   * Before a take: the ready queue was out of reach, or Postgres refused a claim, so that it may lack
   * settings. What is taken then would be refused by Postgres.
   */
  get isInDoubt(): boolean {
    return this.#doubts > this.#settledDoubts;
  }

  doubt(): void {
    this.#doubts += 1;
  }

  /** One at a time, whoever asks. False: the doubt remains. */
  settleDoubt(): Promise<boolean> {
    this.#settling ??= this.settle().finally(() => {
      this.#settling = null;
    });
    return this.#settling;
  }

  /** Unless it was put again since: the news of both may come in either order. */
  limitDeleted(name: string, version: number): void {
    const known = this.#limits.get(name);
    if (known !== undefined && known.version <= version) this.#limits.delete(name);
  }

  /**
   * Queues are created on first use, after the submit has committed and beside it: a row that every
   * submit wrote would be a lock that every submit waits for. The next use tries again.
   */
  ensureLater(names: Iterable<string>): void {
    this.ensure(names).catch((error: unknown) => {
      this.#context.log.warn({ err: error }, 'could not write down the names of new queues');
    });
  }

  async ensure(names: Iterable<string>): Promise<void> {
    const nowMs = performance.now();
    const isUnknown = (name: string) => nowMs - (this.#names.get(name) ?? -Infinity) > nameKnownMs;
    const unknown = [...names].filter(isUnknown);
    if (unknown.length === 0) return;
    await ensureQueues(this.#context.db, unknown, instant(this.#context));
    if (this.#names.size > maxRememberedNames) this.#names.clear();
    for (const name of unknown) this.#names.set(name, nowMs);
  }

  #toConfiguration(
    limits: readonly ConfiguredLimit[],
    queues: readonly ConfiguredRow[],
  ): Configuration {
    const nowMs = approximateNow(this.#context).getTime();
    return { limits, queues: queues.map((queue) => told(queue, nowMs)) };
  }

  /** False: it was known already. */
  #noteQueue(queue: ConfiguredRow): boolean {
    if (!note(this.#queues, queue)) return false;
    if (queue.circuit.kind === 'closed') this.#troubled.delete(queue.name);
    else this.#troubled.set(queue.name, queue);
    return true;
  }

  #noteLimit(limit: ConfiguredLimit): boolean {
    return note(this.#limits, limit);
  }
}

function usedBy({ settings }: ConfiguredRow): string[] {
  return settings.limits.flatMap((limit) => ('use' in limit ? [limit.use] : []));
}

function note<T extends { readonly name: string; readonly version: number }>(
  known: Map<string, T>,
  item: T,
): boolean {
  if (item.version <= (known.get(item.name)?.version ?? 0)) return false;
  known.set(item.name, item);
  return true;
}

/** With what is left of its pause, and with what its circuit lets through. */
function told(queue: ConfiguredRow, nowMs: number): ConfiguredQueue {
  const { name, version, circuit } = queue;
  const pausedForMs = pauseLeftMs(queue, nowMs);
  const settings = {
    ...settingsUnder(circuit, queue.settings),
    paused: pausedForMs === null || pausedForMs > 0,
  };
  return { name, version, settings, pausedForMs, probes: probesOf(circuit) };
}
