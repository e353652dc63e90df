import type { TaskId } from '../../domain/ids.js';
import type { JsonValue } from '../../domain/json.js';
import type { Bus } from '../../runtime/bus.js';
import type { Clock } from '../../runtime/clock.js';
import type { Logger } from '../../runtime/log.js';
import type { Mailbox } from '../../runtime/mailbox.js';
import { MemoryReadyQueue } from '../memory/memory-ready-queue.js';
import type {
  BucketLevel,
  Configuration,
  Configured,
  Finished,
  Grant,
  LiveQueue,
  Newcomer,
  NoteAge,
  Offer,
  OfferAnswer,
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
import { WakeRelay } from '../wake-relay.js';
import { KeptFinishes } from '../kept-finishes.js';
import { CallHost, type HostedCalls } from './call-host.js';
import { LeaderAwayError, type CallPatience } from './leader-calls.js';
import { receivedLook, type ForwardedMethod, type ForwardedSurvey } from './messages.js';
import { ReplicaLink } from './replica-link.js';

export interface ReplicaReadyQueueOptions {
  readonly mailbox: Mailbox;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How the mail flows, for people. */
export interface MailFlow {
  readonly delivery: 'listen' | 'poll';
  /** Of the leader: how many processes it leads. */
  readonly followers: number;
  readonly calls: { readonly answered: number; readonly lost: number; readonly sumMs: number };
  readonly medianMs: number | null;
  readonly p99Ms: number | null;
}

/**
 * The ready queue of processes that share a database without Redis. The one that leads keeps it in its memory; the others
 * send their calls there. While no process leads nothing throws: nothing is held, and nothing is taken.
 */
export class ReplicaReadyQueue implements ReadyQueue {
  readonly #own: MemoryReadyQueue;
  readonly #link: ReplicaLink;
  readonly #host: CallHost;
  readonly #wakes: WakeRelay;
  readonly #kept = new KeptFinishes();
  readonly #returns = new Set<() => void>();
  #onVacant: () => void = () => undefined;
  #leads = false;
  #holdsLease: () => boolean = () => false;
  /** Of the contents that this process filled in as the leader; null: they are not to be used. */
  #generation: number | null = null;

  constructor({ mailbox, clock, log }: ReplicaReadyQueueOptions) {
    this.#own = new MemoryReadyQueue({ clock });
    this.#host = new CallHost(this.#own, () => this.#generation !== null);
    const events = {
      onVacant: () => this.#onVacant(),
      onWakes: (wakes: readonly Wake[]) => this.#wakes.tell(wakes),
      onReturn: () => {
        void this.#tellKept();
        for (const listener of this.#returns) listener();
      },
    };
    this.#link = new ReplicaLink(mailbox, this.#host, events, log);
    this.#wakes = new WakeRelay(this.#link);
    this.#own.onWake((wake) => {
      if (!this.#host.caught(wake)) this.#wakes.tell([wake]);
      return wake.count;
    });
  }

  /** What this process holds counts for all. */
  get leads(): boolean {
    return this.#leads && this.#holdsLease();
  }

  /** Under which the leader is known to the others: the holder of the lease. */
  get address(): string {
    return this.#link.address;
  }

  get bus(): Bus {
    return this.#link;
  }

  get flow(): MailFlow {
    const { calls, delivery } = this.#link;
    return {
      delivery,
      followers: this.#leads ? this.#link.peerCount : 0,
      calls: calls.trips.counts,
      medianMs: calls.trips.quantileMs(0.5),
      p99Ms: calls.trips.quantileMs(0.99),
    };
  }

  /** `onVacant`: the leader gave its lease back, and this process may take it at once. */
  attend(hosted: HostedCalls, onVacant: () => void): void {
    this.#host.tell(hosted);
    this.#onVacant = onVacant;
  }

  /** This process leads from now on; what it holds counts for all. */
  lead(holdsLease: () => boolean): void {
    this.#leads = true;
    this.#holdsLease = holdsLease;
    this.#link.lead(() => this.leads);
  }

  /** Null: nobody leads, as far as this process knows. */
  follow(leader: string | null): void {
    if (this.#leads) {
      this.#leads = false;
      this.#generation = null;
      void this.#own.beginRestore();
    }
    this.#link.follow(leader);
  }

  /** The lease is given back: a follower that hears of it need not wait for its next look. */
  resign(): void {
    this.#link.tellAll(['vacant']);
  }

  async beginRestore(generation: number): Promise<'yours' | 'busy' | 'open'> {
    if (!this.#leads) return 'busy';
    if (this.#generation === generation) return 'open';
    this.#generation = null;
    return this.#own.beginRestore();
  }

  async restore(state: ReadyState): Promise<boolean> {
    if (!this.#leads) return false;
    await this.#own.restore(state);
    this.#generation = state.generation;
    this.#link.tellAll(['open']);
    await this.#tellKept();
    return true;
  }

  async offer(offers: readonly Offer[]): Promise<OfferAnswer> {
    if (this.leads) return this.#own.offer(offers);
    const patience = { patienceMs: offerPatienceMs };
    return this.#ask('offer', [offers.map(toOffer)], { kind: 'rebuild' }, patience);
  }

  /** Only the leader: anywhere else a task could be taken by others before it is written. */
  async announce(newcomers: readonly Newcomer[]): Promise<readonly TaskId[]> {
    if (!this.leads || newcomers.length === 0) return [];
    // Who announced looks after one turn of the event loop and takes back what nobody took.
    void this.#link.announcing(afterTurns(2));
    return this.#own.announce(newcomers);
  }

  async feed(stretches: readonly Stretch[]): Promise<OfferAnswer> {
    if (this.leads) return this.#own.feed(stretches);
    const told = stretches.map((one) => ({ ...one, offers: one.offers.map(toOffer) }));
    return this.#ask('feed', [told], { kind: 'rebuild' });
  }

  async leave(places: readonly Place[]): Promise<boolean> {
    if (this.leads) return this.#own.leave(places);
    return this.#ask('leave', [places.map(toPlace)], false);
  }

  async look(windows: readonly Window[]): Promise<readonly WindowLook[]> {
    if (this.leads) return this.#own.look(windows);
    const looks = await this.#ask('look', [windows.map(toWindow)], windows.map(closedLook));
    return looks.map(receivedLook);
  }

  async beginFeed(windows: readonly Window[]): Promise<readonly WindowLook[]> {
    if (this.leads) return this.#own.beginFeed(windows);
    const looks = await this.#ask('beginFeed', [windows.map(toWindow)], windows.map(closedLook));
    return looks.map(receivedLook);
  }

  async listBehind(): Promise<readonly Window[]> {
    if (this.leads) return this.#own.listBehind();
    return this.#ask('listBehind', [], []);
  }

  /** A lease that lapsed may be another process's: what is taken then is refused by its generation. */
  async take(request: TakeRequest): Promise<TakeAnswer> {
    if (request.count < 1) throw new RangeError('a take asks for one entry at least');
    if (this.leads) return this.#own.take(request);
    const answer = await this.#ask<TakeAnswer>('take', [request], { kind: 'rebuild' });
    if (answer.kind === 'taken' && !this.#kept.isEmpty) await this.#tellKept();
    return answer;
  }

  /** While a lease is given back, what ends still counts for the last checkpoint. */
  async confirm(grants: readonly Grant[]): Promise<void> {
    if (this.#leads) return this.#own.confirm(grants);
    await this.#ask('confirm', [grants.map(toGrant)], null);
  }

  async refund(grants: readonly Grant[]): Promise<void> {
    if (this.#leads) return this.#own.refund(grants);
    await this.#ask('refund', [grants.map(toGrant)], null);
  }

  /** What no leader hears of now is kept: what a task used is owed, and only who ended it can say so. */
  async finish(finished: readonly Finished[]): Promise<void> {
    if (this.#leads) return this.#own.finish(finished);
    const reply = await this.#ask<'away' | null>('finish', [finished.map(toFinished)], 'away');
    if (reply === 'away') this.#kept.keep(finished.map((one) => ({ ...one, isResent: true })));
  }

  async remove(taskIds: readonly TaskId[]): Promise<void> {
    if (this.#leads) return this.#own.remove(taskIds);
    await this.#ask('remove', [taskIds], null);
  }

  async configure(change: Configuration): Promise<Configured | null> {
    if (this.leads) return this.#own.configure(change);
    return this.#ask('configure', [change], null);
  }

  async missing(taskIds: readonly TaskId[]): Promise<readonly TaskId[]> {
    if (this.leads) return this.#own.missing(taskIds);
    return this.#ask('missing', [taskIds], []);
  }

  async listOut(after: OutCursor | null, limit: number): Promise<OutStretch> {
    if (this.leads) return this.#own.listOut(after, limit);
    return this.#ask('listOut', [after, limit], { entries: [], next: null });
  }

  async levels(): Promise<readonly BucketLevel[]> {
    if (this.#leads) return this.#own.levels();
    return this.#ask('levels', [], []);
  }

  async live(queue: string): Promise<LiveQueue> {
    if (this.leads) return this.#own.live(queue);
    return this.#ask('live', [queue], emptyLive);
  }

  async survey(noteAge: NoteAge): Promise<readonly SurveyedQueue[]> {
    if (this.leads) return this.#own.survey(noteAge);
    const empty: ForwardedSurvey = { queues: [], ages: [] };
    const { queues, ages } = await this.#ask('survey', [], empty);
    for (const age of ages) noteAge(...age);
    return queues;
  }

  async position(taskId: TaskId, limit: number): Promise<number | null> {
    if (this.leads) return this.#own.position(taskId, limit);
    return this.#ask('position', [taskId, limit], null);
  }

  onWake(listener: (wake: Wake) => number): () => void {
    return this.#wakes.onWake(listener);
  }

  wakeOthers(wake: Wake): void {
    this.#wakes.tellOthers([wake]);
  }

  trouble(): string | null {
    return this.#leads ? null : this.#link.calls.trouble();
  }

  onReturn(listener: () => void): () => void {
    this.#returns.add(listener);
    return () => this.#returns.delete(listener);
  }

  async close(): Promise<void> {
    this.#wakes.close();
    this.#returns.clear();
    await this.#link.close();
    await this.#own.close();
  }

  async #tellKept(): Promise<void> {
    const kept = this.#kept.takeAll();
    if (kept.length > 0) await this.finish(kept);
  }

  async #ask<Answer>(
    method: ForwardedMethod,
    args: readonly unknown[],
    whenAway: Answer,
    patience: CallPatience = {},
  ): Promise<Answer> {
    const { calls } = this.#link;
    try {
      return (await calls.call(method, args as readonly JsonValue[], patience)) as Answer;
    } catch (error) {
      if (error instanceof LeaderAwayError) return whenAway;
      throw error;
    }
  }
}

/** Whoever submits waits for it; what is not offered is read from the line. */
const offerPatienceMs = 1_000;

const closedLook = (): WindowLook => ({ room: 0, left: null });

const none = { high: 0, medium: 0, low: 0 };
const emptyLive: LiveQueue = {
  depth: none,
  effectiveDepth: none,
  running: 0,
  oldestAgeMs: null,
  buckets: [],
};

/** Callers pass rows that hold more: only what the queue needs is sent. */
function toWindow({ lane, priority }: Window): Window {
  const { queue, taskType, capabilities } = lane;
  return { lane: { queue, taskType, capabilities }, priority };
}

function toPlace(place: Place): Place {
  const { eligibleAtMs, seq } = place;
  return { ...toWindow(place), eligibleAtMs, seq };
}

function toOffer(offer: Offer): Offer {
  const { taskId, ageMs, cost } = offer;
  return { ...toPlace(offer), taskId, ageMs, cost };
}

function toGrant({ taskId, grant }: Grant): Grant {
  return { taskId, grant };
}

function toFinished(finished: Finished): Finished {
  const { queue, reserved, usage } = finished;
  return { ...toGrant(finished), queue, reserved, usage };
}

function afterTurns(count: number): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(() => {
      if (count > 1) void afterTurns(count - 1).then(resolve);
      else resolve();
    });
  });
}
