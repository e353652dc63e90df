import type { TaskId } from '../../domain/ids.js';
import { laneKey, type Lane } from '../../domain/lane.js';
import { Batcher } from '../../runtime/batcher.js';
import type { Bus } from '../../runtime/bus.js';
import type {
  BucketLevel,
  Configuration,
  Configured,
  Finished,
  Grant,
  LiveQueue,
  NoteAge,
  Offer,
  OfferAnswer,
  OfferOutcome,
  OutCursor,
  OutStretch,
  Place,
  ReadyQueue,
  ReadyState,
  Stretch,
  SurveyedQueue,
  TakeAnswer,
  TakeRequest,
  Wake,
  Window,
  WindowLook,
} from '../ready-queue.js';
import { byRows, byWindows, inAnsweredParts, inChunks } from './in-chunks.js';
import type { RedisConnection } from './connection.js';
import { KeptFinishes, type KeptFinish } from '../kept-finishes.js';
import { offerArguments, placeArguments, windowArguments } from './line-arguments.js';
import { afterFirst, inParts, isNothing, packConfiguration } from './packed-settings.js';
import { QueueSurveys } from './queue-surveys.js';
import {
  closedLook,
  emptyLive,
  levelsOf,
  listOf,
  liveOf,
  looksOf,
  outcomesOf,
  outOf,
  restOfTake,
  takeAnswer,
  textsOf,
  wakesOf,
  windowsOf,
} from './replies.js';
import { Restoring } from './restoring.js';
import type { Script } from './script.js';
import { levelsAtOnce, windowsAtOnce } from './constants.js';
import { scripts } from './scripts.js';
import {
  RedisAwayError,
  ScriptRunner,
  type Reply,
  type ScriptRunnerOptions,
} from './script-runner.js';
import { SourceList } from './source-list.js';
import { TakenParts } from './taken-parts.js';
import { WakeRelay } from '../wake-relay.js';

interface Asked {
  readonly taskId: TaskId;
  readonly limit: number;
}

/** What one script is offered, and which of it are stretches of lines. */
interface OfferPart {
  readonly offers: readonly Offer[];
  readonly fed: readonly Stretch[];
}

export interface RedisReadyQueueOptions extends ScriptRunnerOptions {
  readonly bus: Bus;
}

/** A script runs to its end before any other: so many things at once, and nobody waits long. */
const atOnce = 1_000;

const positionsAtOnce = 200;

/** Each may be of another queue, long and behind. */
const looksAtOnce = 500;

/** Queues of an audit: about a millisecond. */
const auditedAtOnce = 100;

/** Scripts that end early and leave their part as it is: then the take is made again. */
const maxTakeAttempts = 20;

/** By one script. */
const mostTaken = 500;

/**
 * Of all scripts of a take: what was taken by the first of them is to be claimed within a few seconds. A take that found
 * nothing rests as long before the next one, which begins elsewhere.
 */
const longestTakeMs = 1_000;

/**
 * The ready queue that servers share. Each operation is a script, so it is atomic; what is chosen and
 * why is in `lua/`. While Redis is away nothing throws: nothing is held, and nothing is taken.
 */
export class RedisReadyQueue implements ReadyQueue {
  readonly #runner: ScriptRunner;
  readonly #restoring: Restoring;
  readonly #wakes: WakeRelay;
  readonly #surveys: QueueSurveys;
  readonly #sources = new SourceList();
  readonly #kept = new KeptFinishes();
  readonly #stopListening: () => void;
  readonly #connection: RedisConnection;
  /** Whoever submits asks for one: those that come together are one script. */
  readonly #positions = new Batcher<Asked, number | null>({
    flush: (asked) => this.#findPositions(asked),
    maxItems: positionsAtOnce,
    concurrency: 2,
  });
  #auditedTo = '0';
  #toldLevels = { generation: '', number: '0' };

  constructor({ bus, ...options }: RedisReadyQueueOptions) {
    this.#runner = new ScriptRunner(options);
    this.#restoring = new Restoring(this.#runner);
    this.#surveys = new QueueSurveys(this.#runner);
    this.#wakes = new WakeRelay(bus);
    this.#connection = options.connection;
    this.#stopListening = options.connection.onReturn(() => void this.#tellKept());
  }

  async beginRestore(generation: number): Promise<'yours' | 'busy' | 'open'> {
    return unlessAway('busy', async () => {
      const begun = await this.#restoring.begin(generation);
      if (begun === 'open') await this.#audit();
      return begun;
    });
  }

  async restore(state: ReadyState): Promise<boolean> {
    const isDone = await unlessAway(false, () => this.#restoring.restore(state));
    if (isDone) await this.#tellKept();
    return isDone;
  }

  async offer(offers: readonly Offer[]): Promise<OfferAnswer> {
    return this.#offerParts(inChunks(offers, atOnce).map((part) => ({ offers: part, fed: [] })));
  }

  /** Other servers would take them, and find nothing written. */
  async announce(): Promise<readonly TaskId[]> {
    return [];
  }

  async feed(stretches: readonly Stretch[]): Promise<OfferAnswer> {
    return this.#offerParts(
      byRows(stretches, atOnce).map((part) => ({
        offers: part.flatMap(({ offers }) => offers),
        fed: part,
      })),
    );
  }

  async leave(places: readonly Place[]): Promise<boolean> {
    return unlessAway(false, async () => {
      for (const part of inChunks(places, atOnce)) {
        if ((await this.#runner.run(scripts.leave, '', ...placeArguments(part))) === 'closed')
          return false;
      }
      return true;
    });
  }

  look(windows: readonly Window[]): Promise<readonly WindowLook[]> {
    return this.#look(windows, 0);
  }

  beginFeed(windows: readonly Window[]): Promise<readonly WindowLook[]> {
    return this.#look(windows, 1);
  }

  async listBehind(): Promise<readonly Window[]> {
    return unlessAway<readonly Window[]>([], async () => {
      // A scan may name one twice.
      const found = new Map<string, Window>();
      let cursor = '0';
      do {
        const [next, fields] = listOf(await this.#runner.run(scripts.listBehind, cursor, atOnce));
        for (const window of windowsOf(fields)) found.set(windowArguments(window).join(), window);
        cursor = String(next);
      } while (cursor !== '0');
      return [...found.values()];
    });
  }

  async take(request: TakeRequest): Promise<TakeAnswer> {
    if (request.count < 1) throw new RangeError('a take asks for one entry at least');
    return unlessAway<TakeAnswer>({ kind: 'rebuild' }, () => this.#take(request));
  }

  /** A script is short: many entries, and what a worker can do of many sources, are taken by several. */
  async #take(request: TakeRequest): Promise<TakeAnswer> {
    const found = new TakenParts(request.count, this.#sources.partsFor(request));
    let attemptsLeft = maxTakeAttempts;
    const endsMs = this.#runner.elapsedMs() + longestTakeMs;
    const isLate = () => this.#runner.elapsedMs() >= endsMs;
    while (found.part !== null && attemptsLeft > 0 && !isLate()) {
      const { part } = found;
      const count = Math.min(request.count - found.size, mostTaken);
      const told = await this.#runner.run(scripts.take, this.#sources.version, count, ...part);
      const reply = listOf(told);
      const [kind, version, isMore, keys] = reply;
      if (kind === 'rebuild') return found.size === 0 ? { kind: 'rebuild' } : found.answer();
      if (!this.#kept.isEmpty) await this.#tellKept();
      if (kind === 'stale') {
        // A server that has just begun reads them all, a stretch at a time.
        this.#sources.update(String(version), isMore === 1, textsOf(keys));
        found.beginAnew(this.#sources.partsFor(request));
      } else {
        const rest = restOfTake(reply);
        if (rest !== null) {
          found.splitPart(this.#sources.partsAfter(part, rest));
          found.waitBy(rest.waitMs);
        }
        found.note(takeAnswer(reply));
      }
      if (found.part === part) attemptsLeft -= 1;
    }
    if (found.part !== null) found.waitBy(found.size === 0 && isLate() ? longestTakeMs : 0);
    return found.answer();
  }

  async confirm(grants: readonly Grant[]): Promise<void> {
    await this.#tellGrants(scripts.confirm, grants);
  }

  async refund(grants: readonly Grant[]): Promise<void> {
    await this.#tellGrants(scripts.refund, grants);
  }

  async finish(finished: readonly Finished[]): Promise<void> {
    await this.#tellFinished(finished.map((one) => ({ ...one, isResent: false })));
  }

  async remove(taskIds: readonly TaskId[]): Promise<void> {
    await unlessAway(undefined, async () => {
      await inAnsweredParts(taskIds, windowsAtOnce, async (part) =>
        this.#noteDone(await this.#runner.run(scripts.remove, ...part)),
      );
    });
  }

  async configure(change: Configuration): Promise<Configured | null> {
    return unlessAway<Configured | null>(null, async () => {
      let configured: Configured | null = null;
      for (const part of inParts(change)) {
        for (let rest = part; !isNothing(rest);) {
          const reply = await this.#runner.run(scripts.configure, '', packConfiguration(rest));
          if (reply === 'closed') return null;
          const [generation, lastGrant, wakes = [], done] = listOf(reply);
          this.#tellWakes(wakes);
          configured = { generation: Number(generation), lastGrant: Number(lastGrant) };
          rest = afterFirst(rest, Number(done));
        }
      }
      return configured;
    });
  }

  async missing(taskIds: readonly TaskId[]): Promise<readonly TaskId[]> {
    return unlessAway<readonly TaskId[]>([], async () => {
      const found: TaskId[] = [];
      for (const part of inChunks(taskIds, atOnce)) {
        found.push(...(textsOf(await this.#runner.run(scripts.missing, ...part)) as TaskId[]));
      }
      return found;
    });
  }

  async listOut(after: OutCursor | null, limit: number): Promise<OutStretch> {
    return unlessAway<OutStretch>({ entries: [], next: null }, async () => {
      const most = Math.min(limit, atOnce);
      const [next, listed] = listOf(await this.#runner.run(scripts.listOut, after ?? '-inf', most));
      return { entries: outOf(listed), next: next === '' ? null : String(next) };
    });
  }

  /**
   * Counts from what this process was told last, not from what Redis sent last: an answer that was
   * lost on the way is told again.
   */
  async levels(): Promise<readonly BucketLevel[]> {
    return unlessAway<readonly BucketLevel[]>([], async () => {
      const found: BucketLevel[] = [];
      let isLast = false;
      while (!isLast) {
        const { generation, number } = this.#toldLevels;
        const [now, last, told] = listOf(
          await this.#runner.run(scripts.levels, generation, number),
        );
        this.#toldLevels = { generation: String(now), number: String(last) };
        const some = levelsOf(told);
        found.push(...some);
        isLast = some.length < levelsAtOnce;
      }
      return found;
    });
  }

  async live(queue: string): Promise<LiveQueue> {
    return unlessAway(emptyLive, async () => liveOf(await this.#runner.run(scripts.live, queue)));
  }

  async survey(noteAge: NoteAge): Promise<readonly SurveyedQueue[]> {
    return unlessAway<readonly SurveyedQueue[]>([], () => this.#surveys.survey(noteAge));
  }

  position(taskId: TaskId, limit: number): Promise<number | null> {
    return this.#positions.add({ taskId, limit });
  }

  onWake(listener: (wake: Wake) => number): () => void {
    return this.#wakes.onWake(listener);
  }

  wakeOthers(wake: Wake): void {
    this.#wakes.tellOthers([wake]);
  }

  trouble(): string | null {
    return this.#runner.trouble();
  }

  onReturn(listener: () => void): () => void {
    return this.#connection.onReturn(listener);
  }

  /** What is in Redis stays: it is not this process's alone. */
  async close(): Promise<void> {
    this.#stopListening();
    this.#restoring.stop();
    this.#wakes.close();
  }

  async #offerParts(
    parts: readonly OfferPart[],
    windowsInPart = windowsAtOnce,
  ): Promise<OfferAnswer> {
    return unlessAway<OfferAnswer>({ kind: 'rebuild' }, async () => {
      const outcomes: OfferOutcome[] = [];
      for (const part of parts) {
        const answer = await this.#offerPart(part, windowsInPart);
        if (answer.kind === 'rebuild') return answer;
        outcomes.push(...answer.outcomes);
      }
      return { kind: 'offered', outcomes };
    });
  }

  /** Goes on with the rest when a script did not do all of it. */
  async #offerPart(part: OfferPart, windowsInPart: number): Promise<OfferAnswer> {
    const { offers, fed } = part;
    const reply = listOf(await this.#runner.run(scripts.offer, ...offerArguments(offers, fed)));
    if (reply[0] === 'rebuild') return { kind: 'rebuild' };
    if (reply[0] === 'split') {
      const smaller = splitOffer(part, windowsInPart);
      return this.#offerParts(smaller, Math.max(2, Math.floor(windowsInPart / 4)));
    }
    const [, told, wakes = [], count] = reply;
    const done = Number(count);
    const outcomes = outcomesOf(told, done);
    const first = offers.slice(0, done);
    this.#wakes.tell([...wakesOfOffers(first, outcomes), ...wakesOf(wakes)]);
    if (done === offers.length) return { kind: 'offered', outcomes };
    const answer = await this.#offerPart(offerAfter(part, done), windowsInPart);
    if (answer.kind === 'rebuild') return answer;
    return { kind: 'offered', outcomes: [...outcomes, ...answer.outcomes] };
  }

  /** A stretch of all queues each time. What is missing closes the contents. */
  async #audit(): Promise<void> {
    this.#auditedTo = String(await this.#runner.run(scripts.audit, this.#auditedTo, auditedAtOnce));
  }

  async #look(windows: readonly Window[], isFeeding: 0 | 1): Promise<readonly WindowLook[]> {
    const closed = windows.map(() => closedLook);
    return unlessAway<readonly WindowLook[]>(closed, async () => {
      const found: WindowLook[] = [];
      for (const part of inChunks(windows, looksAtOnce)) {
        const reply = await this.#runner.run(
          scripts.look,
          isFeeding,
          ...part.flatMap(windowArguments),
        );
        if (reply === 'closed') return closed;
        found.push(...looksOf(reply));
      }
      return found;
    });
  }

  async #findPositions(asked: readonly Asked[]): Promise<(number | null)[]> {
    return unlessAway<(number | null)[]>(
      asked.map(() => null),
      async () => {
        const most = Math.max(...asked.map(({ limit }) => limit));
        const ids = asked.map(({ taskId }) => taskId);
        const found = textsOf(await this.#runner.run(scripts.positions, most, ...ids));
        return asked.map(({ limit }, index) => {
          const position = found[index] ?? '';
          return position === '' ? null : Math.min(limit, Number(position));
        });
      },
    );
  }

  async #tellGrants(script: Script, grants: readonly Grant[]): Promise<void> {
    await unlessAway(undefined, () =>
      inAnsweredParts(grants, atOnce, async (part) => {
        const [ids, given] = [part.map(({ taskId }) => taskId), part.map(({ grant }) => grant)];
        const reply = await this.#runner.run(script, ...ids, ...given);
        return this.#noteDone(reply);
      }),
    );
  }

  /** What can't be told now is kept: each holds a slot of its queue until it is. */
  async #tellFinished(finished: readonly KeptFinish[]): Promise<void> {
    await inAnsweredParts(finished, atOnce, async (part) => {
      const reply = await unlessAway('away', () =>
        this.#runner.run(scripts.finish, ...finishArguments(part)),
      );
      if (reply !== 'away' && reply !== 'closed') return this.#noteDone(reply);
      const isResent = reply === 'away';
      this.#kept.keep(isResent ? part.map((one) => ({ ...one, isResent })) : part);
      return part.length;
    });
  }

  /** Of a script that answers with how many it did, from the first on, and with whom to wake. */
  #noteDone(reply: Reply): number {
    const [done, wakes = []] = listOf(reply);
    this.#tellWakes(wakes);
    return Number(done);
  }

  async #tellKept(): Promise<void> {
    await this.#tellFinished(this.#kept.takeAll());
  }

  #tellWakes(reply: Parameters<typeof wakesOf>[0]): void {
    this.#wakes.tell(wakesOf(reply));
  }
}

/** Parts of so many windows; of those that are fed half as many, since each may have capabilities. */
function splitOffer({ offers, fed }: OfferPart, windows: number): OfferPart[] {
  if (fed.length === 0) {
    return byWindows(offers, windows).map((part) => ({ offers: part, fed: [] }));
  }
  return inChunks(fed, windows / 2).map((part) => ({
    offers: part.flatMap((stretch) => stretch.offers),
    fed: part,
  }));
}

/** Of a stretch that is not done, the rest. */
function offerAfter({ offers, fed }: OfferPart, done: number): OfferPart {
  let toDrop = done;
  const rest = fed.map((stretch) => {
    const left = stretch.offers.slice(toDrop);
    toDrop = Math.max(0, toDrop - stretch.offers.length);
    return { ...stretch, offers: left };
  });
  return { offers: offers.slice(done), fed: rest.filter((stretch) => stretch.offers.length > 0) };
}

async function unlessAway<T>(whenAway: T, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RedisAwayError) return whenAway;
    throw error;
  }
}

/** Ids first, then a text for each: every argument costs both sides more than what is in it. */
function finishArguments(finished: readonly KeptFinish[]): string[] {
  const ids = finished.map(({ taskId }) => taskId);
  const texts = finished.map(({ grant, queue, reserved, usage, isResent }) => {
    if (usage === null) return grant;
    return `${grant}\n${JSON.stringify({ queue, reserved, usage, isResent })}`;
  });
  return [...ids, ...texts];
}

/** Lane by lane, with the number accepted. */
function wakesOfOffers(
  offers: readonly Offer[],
  outcomes: readonly OfferOutcome[],
): Iterable<Wake> {
  const wakes = new Map<string, { readonly lanes: readonly Lane[]; count: number }>();
  for (const [index, { lane }] of offers.entries()) {
    if (outcomes[index] !== 'accepted') continue;
    const key = laneKey(lane);
    const wake = wakes.get(key);
    if (wake === undefined) wakes.set(key, { lanes: [lane], count: 1 });
    else wake.count += 1;
  }
  return wakes.values();
}
