import { closed, probesOf, settingsUnder, type Circuit } from '../domain/circuit.js';
import { defaultQueueSettings, type QueueSettings } from '../domain/queue-settings.js';
import type { Configuration, ConfiguredLimit, ConfiguredQueue } from '../ready/ready-queue.js';
import { findLimitsChanged } from '../store/limits.js';
import { ensureQueues, findConfigured, findQueue, type ConfiguredRow } from '../store/queues.js';
import type { Checkpoints } from './checkpoints.js';
import { approximateNow, type EngineContext } from './context.js';
import { pauseLeftMs } from './queue-pause.js';

/** A change that committed late may be older than one already seen. */
const overlapMs = 30_000;
const maxRememberedNames = 100_000;

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
  /** Names that have a row. */
  readonly #names = new Set<string>();
  /** Names of queues and limits that the ready queue could not be told of. */
  readonly #untold = { queues: new Set<string>(), limits: new Set<string>() };
  #readAtMs: number | null = null;

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

  /** Answers with what changed since the last time. */
  async load(): Promise<Configuration> {
    const { db } = this.#context;
    const since = this.#readAtMs === null ? null : new Date(this.#readAtMs - overlapMs);
    const readAtMs = db.nowMs();
    // Queues first: whatever limit they use was there before them.
    const queues = (await findConfigured(db, since)).filter((queue) => this.#noteQueue(queue));
    const limits = (await findLimitsChanged(db, since)).filter((limit) => this.#noteLimit(limit));
    this.#readAtMs = readAtMs;
    return this.#toConfiguration(limits, queues);
  }

  /** Reads what other processes changed and passes it on, and what could not be passed on before. */
  async refresh(): Promise<void> {
    const { queues, limits } = await this.load();
    for (const { name } of queues) this.#untold.queues.add(name);
    for (const { name } of limits) this.#untold.limits.add(name);
    await this.#tellUntold();
  }

  /** After it was filled anew: something may have changed meanwhile. */
  async tellAll(): Promise<void> {
    await this.load();
    await this.#tell([...this.#limits.values()], [...this.#queues.values()]);
  }

  /** After the commit that changed it. */
  async queueChanged(queue: ConfiguredRow): Promise<void> {
    this.#noteQueue(queue);
    // A limit that another process made a moment ago may not be known here yet.
    const isKnown = (name: string) => this.#limits.has(name);
    const uses = queue.settings.limits.flatMap((limit) => ('use' in limit ? [limit.use] : []));
    if (!uses.every(isKnown)) await this.refresh();
    await this.#tell([], [queue]);
  }

  async limitChanged(limit: ConfiguredLimit): Promise<void> {
    this.#noteLimit(limit);
    await this.#tell([limit], []);
  }

  limitDeleted(name: string): void {
    this.#limits.delete(name);
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
    const unknown = [...names].filter((name) => !this.#names.has(name));
    if (unknown.length === 0) return;
    await ensureQueues(this.#context.db, unknown);
    if (this.#names.size > maxRememberedNames) this.#names.clear();
    for (const name of unknown) this.#names.add(name);
  }

  async #tellUntold(): Promise<void> {
    const limits = takeAll(this.#untold.limits).flatMap((name) => this.#limits.get(name) ?? []);
    const queues = takeAll(this.#untold.queues).flatMap((name) => this.#queues.get(name) ?? []);
    if (limits.length + queues.length > 0) await this.#tell(limits, queues);
  }

  /** Versions make it no matter how often and in which order it is told. */
  async #tell(limits: readonly ConfiguredLimit[], queues: readonly ConfiguredRow[]): Promise<void> {
    const configuration = this.#toConfiguration(limits, queues);
    let isTold = false;
    try {
      await this.#checkpoints.begin(configuration);
      isTold = await this.#context.ready.configure(configuration);
    } finally {
      if (!isTold) {
        for (const { name } of queues) this.#untold.queues.add(name);
        for (const { name } of limits) this.#untold.limits.add(name);
      }
    }
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

function takeAll(names: Set<string>): string[] {
  const taken = [...names];
  names.clear();
  return taken;
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
