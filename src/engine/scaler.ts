import { randomUUID } from 'node:crypto';
import { closedForMs, probesOf, settingsUnder } from '../domain/circuit.js';
import { SluiceError } from '../domain/errors.js';
import {
  defaultScalingSettings,
  demandOf,
  desiredAfter,
  type Demand,
  type Past,
  type ScalingSettings,
} from '../domain/scaling.js';
import type { QueueSettings } from '../domain/queue-settings.js';
import { scalingText } from '../domain/scaling-text.js';
import { storableText } from '../domain/storable-text.js';
import type { LiveQueue } from '../ready/ready-queue.js';
import type { QueueRoom } from '../domain/work-waiting.js';
import type { Scaling } from '../protocol/scaling-api.js';
import {
  countLanes,
  findAsked,
  leaveAsking,
  noteAsked,
  takeAskingTurn,
  type Asked,
  type CountedGroup,
  type ProvisionerKind,
} from '../store/scaling.js';
import type { Workforce } from '../domain/workforce.js';
import { inTurns } from '../runtime/turns.js';
import type { ActiveWorkers } from './active-workers.js';
import { Cached } from './cached.js';
import { approximateNow, instant, type EngineContext } from './context.js';
import type { LiveQueues } from './live-queues.js';
import type { QueueDirectory } from './queue-directory.js';
import { isPausedAt } from './queue-pause.js';
import type { Counters } from './counters.js';

export interface ScalerParts {
  readonly active: ActiveWorkers;
  readonly live: LiveQueues;
  readonly queues: QueueDirectory;
  readonly counters: Counters;
  readonly notServing: () => string | null;
}

/** What a provisioner is told. */
export interface Wish {
  /** How many workers there should be in all: absolute, so that to be asked twice does no harm. */
  readonly desired: number;
  readonly current: number;
  readonly min: number;
  readonly max: number;
  readonly waiting: number;
  readonly reason: string;
  /** Of the current ones, as far as they have one. */
  readonly names: readonly string[];
  /** Of these, those that hold nothing. */
  readonly idle: readonly string[];
}

type Counted = [Awaited<ReturnType<typeof countLanes>>, Workforce<CountedGroup>];

type Look = Wish & Pick<Demand, 'queues'>;

const maxLanes = 1_000;
const maxEach = 10_000;
const leastLeaseMs = 30_000;
const maxErrorLength = 500;

/** How many workers there should be, looked at once per interval whoever asks; and who asks for them. */
export class Scaler {
  readonly #context: EngineContext;
  readonly #parts: ScalerParts;
  readonly #counted: Cached<Counted>;
  readonly #look: Cached<Look>;
  readonly #asker = randomUUID();
  #settings: ScalingSettings;
  #past: Past | null = null;

  constructor(context: EngineContext, parts: ScalerParts) {
    this.#context = context;
    this.#parts = parts;
    this.#settings = context.scaling ?? defaultScalingSettings;
    const { intervalMs } = this.#settings;
    this.#counted = new Cached(intervalMs, () => this.#count());
    // Most of what it takes are rests between looks at the ready queue.
    this.#look = new Cached(intervalMs, () => this.#lookNow(), { costShare: 0 });
  }

  get intervalMs(): number {
    return this.#settings.intervalMs;
  }

  /** Refuses where the ready queue is another process's: only that one knows what may start. */
  async getScaling(): Promise<Scaling> {
    const { desired, current, min, max, waiting, reason, queues } = await this.#lookLately();
    const { db } = this.#context;
    const asked = await findAsked(db, this.#leaseMs(), instant(this.#context));
    const provisioner = asked === null ? nobody : provisionerView(asked);
    return { desired, current, min, max, waiting, reason, queues, provisioner };
  }

  /** Workers that were asked for and are not there, and whether asking fails; null: nobody is asked. */
  async shortfall(): Promise<{ missing: number; failingSince: Date | null } | null> {
    const asked = await findAsked(this.#context.db, this.#leaseMs(), instant(this.#context));
    if (asked === null) return null;
    const { failingSince } = asked;
    if (this.#whyNotLook() !== null) return { missing: 0, failingSince };
    const { desired, current } = await this.#look.get();
    return { missing: Math.max(0, desired - current), failingSince };
  }

  async wish(): Promise<Wish> {
    const { queues: _, ...wish } = await this.#lookLately();
    return wish;
  }

  /** What those that are asked for turned out to do: for other work nobody is asked any more. */
  learn(taskTypes: readonly string[]): void {
    const { offer } = this.#settings;
    this.#settings = { ...this.#settings, offer: { ...offer, taskTypes } };
  }

  /** Takes or renews the turn to ask. False: another server asks, or this one does not serve. */
  async takeTurn(provisioner: ProvisionerKind): Promise<boolean> {
    if (this.#parts.notServing() !== null) return false;
    const { db, mode } = this.#context;
    const isAlone = mode === 'memory';
    const turn = { asker: this.#asker, provisioner, leaseMs: this.#leaseMs(), isAlone };
    return takeAskingTurn(db, turn, instant(this.#context));
  }

  /** Null: it went well. */
  async noteAsked(error: string | null): Promise<void> {
    const short = error === null ? null : storableText(error, maxErrorLength);
    await noteAsked(this.#context.db, this.#asker, short, instant(this.#context));
  }

  async leaveTurn(): Promise<void> {
    await leaveAsking(this.#context.db, this.#asker);
  }

  #leaseMs(): number {
    return Math.max(leastLeaseMs, 3 * this.#settings.intervalMs);
  }

  async #lookLately(): Promise<Look> {
    const refusal = this.#whyNotLook();
    if (refusal !== null) throw refusal;
    return this.#look.get();
  }

  /** Null: this process knows what may start. */
  #whyNotLook(): SluiceError | null {
    const notServing = this.#parts.notServing();
    if (notServing !== null) return new SluiceError('unavailable', notServing);
    const trouble = this.#context.ready.trouble();
    return trouble === null
      ? null
      : new SluiceError('unavailable', trouble, { retryAfterSeconds: 1 });
  }

  async #lookNow(): Promise<Look> {
    const settings = this.#settings;
    const [lanes, workforce] = await this.#counted.get();
    const nowMs = approximateNow(this.#context).getTime();
    const roomOf = await this.#rooms(new Set(lanes.map(({ lane }) => lane.queue)), nowMs);
    const averageDurationMs = this.#averageMs(nowMs);
    const facts = { lanes, workforce, roomOf, averageDurationMs };
    const demand = await inTurns(demandOf(facts, settings));
    const { desired, past } = desiredAfter(this.#past, demand, settings, nowMs);
    this.#past = past;
    const sharing = [...workforce.sharing(settings.offer)];
    return {
      desired,
      current: demand.current,
      min: settings.min,
      max: settings.max,
      waiting: demand.waiting,
      reason: scalingText(demand, desired, settings),
      queues: demand.queues,
      names: sharing.flatMap(({ names }) => names),
      idle: sharing.flatMap(({ idle }) => idle),
    };
  }

  #count(): Promise<Counted> {
    const { db } = this.#context;
    return Promise.all([countLanes(db, maxLanes, maxEach), this.#parts.active.get()]);
  }

  async #rooms(names: ReadonlySet<string>, nowMs: number): Promise<(queue: string) => QueueRoom> {
    const limited = [...names].filter((name) => this.#isLimited(name));
    const live = await this.#parts.live.allNow(limited);
    const rooms = [...names].map(
      (name) => [name, this.#roomOf(name, live.get(name) ?? null, nowMs)] as const,
    );
    const byName = new Map(rooms);
    return (queue) => byName.get(queue) ?? noRoom;
  }

  #isLimited(queue: string): boolean {
    const { limits, maxConcurrency } = this.#settingsOf(queue);
    return limits.length > 0 || maxConcurrency !== null;
  }

  #settingsOf(queue: string): QueueSettings {
    const { queues } = this.#parts;
    return settingsUnder(queues.circuitOf(queue), queues.settingsOf(queue));
  }

  #roomOf(queue: string, live: LiveQueue | null, nowMs: number): QueueRoom {
    const circuit = this.#parts.queues.circuitOf(queue);
    const settings = this.#settingsOf(queue);
    const { maxConcurrency } = settings;
    const averageDurationMs = this.#averageMs(nowMs, queue);
    if (isPausedAt(settings, nowMs)) return { ...noRoom, averageDurationMs };
    if (closedForMs(circuit, nowMs) > 0) return { ...noRoom, stoppedBy: 'circuit_open' };
    const free = (maxConcurrency ?? Infinity) - (live?.running ?? 0);
    const slots = Math.max(0, Math.min(free, probesOf(circuit) ?? Infinity));
    return {
      stoppedBy: null,
      slots: slots === Infinity ? null : slots,
      buckets: live?.buckets ?? [],
      averageDurationMs,
    };
  }

  #averageMs(nowMs: number, queue?: string): number | null {
    const seconds = this.#parts.counters.averageDurationSeconds(nowMs, queue);
    return seconds === null ? null : seconds * 1000;
  }
}

const nobody: Scaling['provisioner'] = {
  kind: 'none',
  lastAskedAt: null,
  failingSince: null,
  error: null,
};

function provisionerView(asked: Asked): Scaling['provisioner'] {
  const { provisioner: kind, askedAt: lastAskedAt, failingSince, error } = asked;
  return { kind, lastAskedAt, failingSince, error };
}

const noRoom: QueueRoom = {
  stoppedBy: 'paused',
  slots: 0,
  buckets: [],
  averageDurationMs: null,
};
