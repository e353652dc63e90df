import type { JsonValue } from '../../domain/json.js';
import type { Bus } from '../../runtime/bus.js';
import type { Logger } from '../../runtime/log.js';
import type { Mailbox } from '../../runtime/mailbox.js';
import type { Wake } from '../ready-queue.js';
import type { CallHost } from './call-host.js';
import { LeaderAwayError, LeaderCalls } from './leader-calls.js';
import { isForwarded, toMessage, type Message } from './messages.js';

/** How often a process tells the leader that it is there, and for how long the leader believes it. */
const helloMs = 10_000;
const peerMs = 3 * helloMs;

export interface ReplicaEvents {
  /** The leader gave its lease back. */
  readonly onVacant: () => void;
  /** Calls will be answered again, or the leader's ready queue was filled anew. */
  readonly onReturn: () => void;
  /** What a call of this process made takeable. */
  readonly onWakes: (wakes: readonly Wake[]) => void;
}

/**
 * Joins one process with the others over the mailbox: calls to the leader, answers of the leader, and a bus, on which the
 * leader passes every message on to all others.
 */
export class ReplicaLink implements Bus {
  readonly calls: LeaderCalls;
  readonly #mailbox: Mailbox;
  readonly #log: Logger;
  readonly #host: CallHost;
  readonly #events: ReplicaEvents;
  readonly #listeners = new Set<(message: JsonValue) => void>();
  /** Those that this process leads, and when it heard of them last. */
  readonly #peers = new Map<string, number>();
  #isLeading: () => boolean = () => false;
  /** Tasks of this process are announced that are not written yet: see `ReadyQueue.announce`. */
  #announcements = 0;
  /** What came meanwhile. */
  #deferred: { readonly from: string; readonly messages: readonly Message[] }[] = [];
  #helloTimer: NodeJS.Timeout | null = null;

  constructor(mailbox: Mailbox, host: CallHost, events: ReplicaEvents, log: Logger) {
    this.#mailbox = mailbox;
    this.#host = host;
    this.#events = events;
    this.#log = log;
    this.calls = new LeaderCalls((leader, text) => mailbox.send(leader, text));
    mailbox.receive((from, messages) => this.#receive(from, messages));
  }

  get address(): string {
    return this.#mailbox.address;
  }

  get delivery(): 'listen' | 'poll' {
    return this.#mailbox.delivery;
  }

  /** How many processes this one leads. */
  get peerCount(): number {
    this.#forgetSilent();
    return this.#peers.size;
  }

  /** `isLeading`: the lease is held and has not lapsed, asked at every call. */
  lead(isLeading: () => boolean): void {
    this.#isLeading = isLeading;
    this.calls.pointTo(null);
    this.#stopHello();
  }

  follow(leader: string | null): void {
    this.#isLeading = () => false;
    this.#peers.clear();
    if (leader === this.calls.leader) return;
    this.calls.pointTo(leader);
    this.#stopHello();
    if (leader === null) return;
    this.#hello();
    this.#events.onReturn();
  }

  /** Until it is over nothing is taken by others: they could take what nobody has written yet. */
  async announcing(announcement: Promise<void>): Promise<void> {
    this.#announcements += 1;
    await announcement;
    this.#announcements -= 1;
    if (this.#announcements > 0) return;
    for (const { from, messages } of this.#deferred.splice(0)) this.#serve(from, messages);
  }

  tellAll(message: Message): void {
    this.#forgetSilent();
    for (const peer of this.#peers.keys()) this.#send(peer, message);
  }

  publish(message: JsonValue): void {
    if (this.calls.leader !== null) this.#send(this.calls.leader, ['bus', message]);
    else this.tellAll(['bus', message]);
  }

  subscribe(listener: (message: JsonValue) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#stopHello();
    this.#listeners.clear();
    if (this.calls.leader !== null) this.#send(this.calls.leader, ['bye']);
    this.calls.pointTo(null);
    await this.#mailbox.close();
  }

  #hello(): void {
    if (this.calls.leader === null) return;
    this.#send(this.calls.leader, ['hello']);
    this.#helloTimer = setTimeout(() => this.#hello(), helloMs).unref();
  }

  #stopHello(): void {
    if (this.#helloTimer !== null) clearTimeout(this.#helloTimer);
    this.#helloTimer = null;
  }

  #forgetSilent(): void {
    const oldestMs = performance.now() - peerMs;
    for (const [peer, heardMs] of this.#peers) if (heardMs < oldestMs) this.#peers.delete(peer);
  }

  /** What can't be sent is lost, as any message may be. */
  #send(to: string, message: Message): void {
    this.#mailbox.send(to, JSON.stringify(message)).catch(() => undefined);
  }

  #receive(from: string, messages: readonly JsonValue[]): void {
    const asked: Message[] = [];
    for (const value of messages) {
      const message = toMessage(value);
      if (message === null) continue;
      if (isForLeader(message)) asked.push(message);
      else this.#hear(from, message);
    }
    if (asked.length === 0) return;
    if (this.#announcements > 0) this.#deferred.push({ from, messages: asked });
    else this.#serve(from, asked);
  }

  #hear(from: string, message: Message): void {
    const [kind] = message;
    if (kind === 'answer') this.calls.answered(from, message[1], message[2]);
    else if (kind === 'failed') this.calls.failed(from, message[1], new Error(message[2]));
    else if (kind === 'refused') {
      this.calls.failed(from, message[1], new LeaderAwayError('the process asked does not lead'));
    } else if (kind === 'bus') this.#hearBus(from, message[1]);
    else if (from !== this.calls.leader) return;
    else if (kind === 'wakes') this.#events.onWakes(message[1]);
    else if (kind === 'open') this.#events.onReturn();
    else if (kind === 'vacant') this.#events.onVacant();
  }

  #hearBus(from: string, message: JsonValue): void {
    if (this.#isLeading()) {
      this.#peers.set(from, performance.now());
      for (const peer of this.#peers.keys()) if (peer !== from) this.#send(peer, ['bus', message]);
    }
    for (const listener of [...this.#listeners]) {
      try {
        listener(message);
      } catch (error) {
        this.#log.error({ err: error }, 'a listener of the bus threw');
      }
    }
  }

  #serve(from: string, messages: readonly Message[]): void {
    for (const message of messages) {
      const [kind] = message;
      if (kind === 'call') this.#runCall(from, message[1], message[2], message[3]);
      else if (kind === 'bye') this.#peers.delete(from);
      else if (this.#isLeading()) this.#peers.set(from, performance.now());
    }
  }

  #runCall(from: string, id: number, method: unknown, args: readonly JsonValue[]): void {
    if (!this.#isLeading() || !isForwarded(method) || !this.#host.canRun(method)) {
      this.#send(from, ['refused', id]);
      return;
    }
    this.#peers.set(from, performance.now());
    const { wakes, answer } = this.#host.run(method, args);
    if (wakes.length > 0) this.#send(from, ['wakes', wakes]);
    answer.then(
      (value) => this.#send(from, ['answer', id, value]),
      (error: unknown) => {
        this.#log.error({ err: error, method }, 'a call of another process failed');
        this.#send(from, ['failed', id, String(error)]);
      },
    );
  }
}

function isForLeader([kind]: Message): boolean {
  return kind === 'call' || kind === 'hello' || kind === 'bye';
}
