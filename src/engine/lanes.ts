import { routingGroupKey, type Lane } from '../domain/lane.js';
import type { Refusal } from '../protocol/problem-wire.js';
import { Batcher } from '../runtime/batcher.js';
import { enterLanes, purgeLanes, type EnteringLane, type Purged } from '../store/lanes.js';
import { approximateNow, instant, judgeDatabaseFailure, type EngineContext } from './context.js';
import type { QueueDirectory } from './queue-directory.js';

/** A lane that was not used for this long, and in which nothing waits, gives up its place. */
const keptForMs = 10 * 60_000;
/** It is entered again when less than this is left of that. */
const enteredAgainMs = keptForMs / 2;
/**
 * Lanes of a queue that this server does not enter in Postgres: most queues have few, and cost no
 * statement. Not where fewer than `leastWithFree` are allowed: there the number holds exactly.
 */
const freeLanes = 16;
const leastWithFree = 1_000;
/** Past this many, all are forgotten here, and entered again when they are used. */
const maxRemembered = 100_000;
/** The count of a queue is locked meanwhile: whoever enters a further lane of it waits. */
const purgedAtOnce = 1_000;
/** Then the sweep goes on with other work, and the next tick with what is left. */
const purgeForMs = 2_000;
/** A full queue that had nothing to forget is not asked again for this long. */
const purgeAgainMs = 1_000;
const retryAfterSeconds = 60;

/** A task as far as its lane goes. */
interface LaneUse {
  readonly window: { readonly lane: Lane };
  readonly runAt: Date | null;
  readonly delaySeconds: number | null;
}

interface KnownLane {
  readonly lane: Lane;
  /** By the clock of Postgres. */
  untilMs: number;
}

interface KnownQueue {
  readonly lanes: Map<string, KnownLane>;
  /** Its lanes are in Postgres. */
  isEntered: boolean;
  /** Until then it is not purged because it is full. */
  nextPurgeMs: number;
}

/**
 * Holds the number of lanes of a queue to `max_lanes`, over all servers: a lane is entered in Postgres
 * before its first task is written. Lanes that were entered a while ago are known here, and cost a look
 * into a map.
 */
export class Lanes {
  readonly #context: EngineContext;
  readonly #settings: QueueDirectory;
  readonly #isServing: () => boolean;
  readonly #queues = new Map<string, KnownQueue>();
  readonly #entering: Batcher<EnteringLane, boolean>;
  #size = 0;
  /** Most of a batch is of one lane. */
  #latest: KnownLane | null = null;

  constructor(context: EngineContext, settings: QueueDirectory, isServing: () => boolean) {
    this.#context = context;
    this.#settings = settings;
    this.#isServing = isServing;
    this.#entering = new Batcher({
      flush: (lanes) => this.#enterAll(lanes),
      maxItems: 1_000,
      judge: judgeDatabaseFailure,
    });
  }

  /** Whether all of them are of lanes that need not be entered now. */
  areKnown(uses: readonly LaneUse[]): boolean {
    const nowMs = this.#nowMs();
    return uses.every((use) => this.#isKnown(use, nowMs));
  }

  /** For each, in order: null, or why it is refused. */
  async enter(uses: readonly LaneUse[]): Promise<(Refusal | null)[]> {
    return Promise.all(uses.map((use) => this.#enter(use)));
  }

  /** Those that were not used for a while give up their places, some at a time. */
  async purge(): Promise<void> {
    const endMs = performance.now() + purgeForMs;
    let seen: number;
    do ({ seen } = await this.#purge());
    while (seen === purgedAtOnce && performance.now() < endMs);
  }

  async #purge(queues?: readonly string[]): Promise<Purged> {
    const { db, log } = this.#context;
    const what = { limit: purgedAtOnce, keptForMs, ...(queues !== undefined && { queues }) };
    const done = await purgeLanes(db, what, instant(this.#context));
    const { purged } = done;
    if (purged > 0) log.debug({ purged }, 'forgot lanes that were not used');
    return done;
  }

  /** A queue that is full first forgets lanes that were not used. */
  async #enterAll(lanes: readonly EnteringLane[]): Promise<boolean[]> {
    const { db } = this.#context;
    const areIn = await enterLanes(db, lanes, instant(this.#context));
    const refused = lanes.filter((_, index) => areIn[index] === false);
    if (refused.length === 0 || !(await this.#makeRoom(refused))) return areIn;
    const again = (await enterLanes(db, refused, instant(this.#context))).values();
    return areIn.map((isIn) => isIn || again.next().value === true);
  }

  async #makeRoom(refused: readonly EnteringLane[]): Promise<boolean> {
    const nowMs = performance.now();
    const full = [...new Set(refused.map(({ queue }) => queue))].filter(
      (name) => this.#queueOf(name).nextPurgeMs <= nowMs,
    );
    if (full.length === 0) return false;
    const { seen, purged } = await this.#purge(full);
    if (seen < purgedAtOnce) {
      for (const name of full) this.#queueOf(name).nextPurgeMs = nowMs + purgeAgainMs;
    }
    return purged > 0;
  }

  #nowMs(): number {
    return approximateNow(this.#context).getTime();
  }

  #isKnown(use: LaneUse, nowMs: number): boolean {
    const { lane } = use.window;
    const neededMs = startsAtMs(use, nowMs) + enteredAgainMs;
    if (this.#latest?.lane === lane && this.#latest.untilMs > neededMs) return true;
    const queue = this.#queueOf(lane.queue);
    const key = routingGroupKey(lane);
    const known = queue.lanes.get(key);
    if (known !== undefined && known.untilMs > neededMs) {
      this.#latest = known;
      return true;
    }
    if (queue.isEntered) return false;
    const untilMs = startsAtMs(use, nowMs) + keptForMs;
    if (known !== undefined) known.untilMs = untilMs;
    else if (this.#isFree(lane.queue, queue, nowMs)) this.#remember(queue, key, { lane, untilMs });
    else return false;
    return true;
  }

  #isFree(name: string, queue: KnownQueue, nowMs: number): boolean {
    // Whoever does not serve may not have read the newest settings.
    if (!this.#isServing()) return false;
    if (this.#settings.settingsOf(name).maxLanes < leastWithFree) return false;
    if (queue.lanes.size < freeLanes) return true;
    for (const [key, { untilMs }] of queue.lanes) if (untilMs <= nowMs) queue.lanes.delete(key);
    return queue.lanes.size < freeLanes;
  }

  async #enter(use: LaneUse): Promise<Refusal | null> {
    const nowMs = this.#nowMs();
    if (this.#isKnown(use, nowMs)) return null;
    const { lane } = use.window;
    const queue = this.#queueOf(lane.queue);
    // Those that were free until now count as well.
    if (!queue.isEntered) await this.#enterFree(queue, nowMs);
    const entered: KnownLane = { lane, untilMs: startsAtMs(use, nowMs) + keptForMs };
    if (!(await this.#entering.add(this.#entry(entered, nowMs)))) return refusalFor(lane.queue);
    this.#remember(queue, routingGroupKey(lane), entered);
    return null;
  }

  /** Also those that are used, or used for longer, while the others are written. */
  async #enterFree(queue: KnownQueue, nowMs: number): Promise<void> {
    const written = new Map<KnownLane, number>();
    while (!queue.isEntered) {
      const free = [...queue.lanes.values()].filter(
        (known) => written.get(known) !== known.untilMs,
      );
      if (free.length === 0) {
        queue.isEntered = true;
        return;
      }
      for (const known of free) written.set(known, known.untilMs);
      await this.#entering.addAll(free.map((known) => this.#entry(known, nowMs)));
    }
  }

  #entry({ lane, untilMs }: KnownLane, nowMs: number): EnteringLane {
    return { ...lane, keptForMs: Math.max(keptForMs, untilMs - nowMs) };
  }

  #queueOf(name: string): KnownQueue {
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      queue = { lanes: new Map(), isEntered: false, nextPurgeMs: 0 };
      this.#queues.set(name, queue);
    }
    return queue;
  }

  #remember(queue: KnownQueue, key: string, known: KnownLane): void {
    queue.lanes.set(key, known);
    this.#latest = known;
    this.#size += 1;
    if (this.#size <= maxRemembered) return;
    this.#queues.clear();
    this.#size = 0;
  }
}

/** A task that starts later keeps its lane until then. */
function startsAtMs({ runAt, delaySeconds }: LaneUse, nowMs: number): number {
  if (runAt !== null) return Math.max(nowMs, runAt.getTime());
  return delaySeconds === null ? nowMs : nowMs + delaySeconds * 1_000;
}

function refusalFor(queue: string): Refusal {
  return {
    code: 'too_many_lanes',
    detail:
      `Queue ${queue} has as many lanes, combinations of task type and required capabilities, as ` +
      'its setting max_lanes allows. Nothing was accepted. Put data that varies into the ' +
      'parameters, not into the task type; or raise max_lanes of the queue.',
    retryAfterSeconds,
  };
}
