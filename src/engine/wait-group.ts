import { everyType, type Lane } from '../domain/lane.js';
import { IndexedHeap, type Placed } from '../ready/indexed-heap.js';
import type { TakeRequest } from '../ready/ready-queue.js';
import { Alarm } from '../runtime/alarm.js';
import type { PollWaiter } from './poll-waiter.js';

/** What a look was answered: there is more now, or not for this long; null: not before a wake-up. */
export type Opening = 'now' | number | null;

/** Somebody looks after this long, should a wake-up ever go astray. */
const longestWaitMs = 5_000;
/** Who was woken by the alarm has answered by then, or somebody else looks. */
const unansweredMs = 500;

/** The same text for those who would be answered the same. */
export function filterKey({ taskTypes, capabilities, queues }: TakeRequest): string {
  return JSON.stringify([sorted(taskTypes), sorted(capabilities), sorted(queues)]);
}

/** Polls with the same filter. */
export class WaitGroup implements Placed {
  place = -1;
  readonly key: string;
  readonly #taskTypes: ReadonlySet<string> | null;
  readonly #capabilities: ReadonlySet<string>;
  readonly #queues: ReadonlySet<string> | null;
  readonly #members: IndexedHeap<PollWaiter>;
  readonly #alarm = new Alarm(() => {
    this.ring();
  });
  #wakes = 0;
  #wanted = 0;
  #isClosed = false;

  constructor(
    key: string,
    { taskTypes, capabilities, queues }: TakeRequest,
    isBefore: (a: PollWaiter, b: PollWaiter) => boolean,
  ) {
    this.key = key;
    this.#taskTypes = taskTypes === null ? null : new Set(taskTypes);
    this.#capabilities = new Set(capabilities);
    this.#queues = queues === null ? null : new Set(queues);
    this.#members = new IndexedHeap(isBefore);
  }

  get isEmpty(): boolean {
    return this.#members.size === 0;
  }

  /** Entries that its members ask for. */
  get wanted(): number {
    return this.#wanted;
  }

  get first(): PollWaiter | undefined {
    return this.#members.peek();
  }

  /** Nothing is there to take, as far as is known, or somebody is on the way to take it. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  enter(waiter: PollWaiter): void {
    if (this.isEmpty) this.lookBy(performance.now() + longestWaitMs);
    waiter.wakesSeen = this.#wakes;
    this.#members.push(waiter);
    this.#wanted += waiter.count;
  }

  leave(waiter: PollWaiter): void {
    if (waiter.place !== -1) {
      this.#members.remove(waiter);
      this.#wanted -= waiter.count;
    }
    if (this.isEmpty) this.#alarm.stop();
  }

  /** The next to be woken. */
  next(): PollWaiter | undefined {
    const waiter = this.#members.pop();
    this.#wanted -= waiter?.count ?? 0;
    return waiter;
  }

  /** An answer to a look that began before the last wake-up may be older than its reason. */
  answered(waiter: PollWaiter, opening: Opening): void {
    if (opening === 'now') {
      this.open();
      return;
    }
    const atMs = performance.now() + Math.min(opening ?? longestWaitMs, longestWaitMs);
    if (waiter.wakesSeen !== this.#wakes) {
      this.lookBy(atMs);
      return;
    }
    this.#isClosed = true;
    this.#alarm.set(atMs);
  }

  noteWake(): void {
    this.#wakes += 1;
  }

  /** One of them looks. */
  ring(): void {
    const waiter = this.next();
    if (waiter === undefined) return;
    this.#alarm.set(performance.now() + unansweredMs);
    const passOn = (): void => {
      this.ring();
    };
    waiter.end({ lanes: [], passOn });
  }

  open(): void {
    this.#isClosed = false;
  }

  lookBy(atMs: number): void {
    this.#alarm.advance(atMs);
  }

  canTakeAny(lanes: readonly Lane[]): boolean {
    return lanes.some((lane) => this.#canTake(lane));
  }

  #canTake({ taskType, queue, capabilities }: Lane): boolean {
    // A wake-up that names no lane is for all of a queue, or for all queues.
    const isAny = taskType === everyType;
    return (
      (isAny || this.#taskTypes?.has(taskType) !== false) &&
      ((isAny && queue === '') || this.#queues?.has(queue) !== false) &&
      capabilities.every((capability) => this.#capabilities.has(capability))
    );
  }
}

function sorted(names: readonly string[] | null): readonly string[] | null {
  return names === null ? null : [...new Set(names)].sort();
}
