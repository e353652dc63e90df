import { setTimeout as delay } from 'node:timers/promises';
import { SluiceError } from '../domain/errors.js';
import { liveQueue } from '../ready/memory/live-queue.js';
import type { LiveQueue, ReadyQueue } from '../ready/ready-queue.js';

/** Reads that are sent to the ready queue together. */
const sliceSize = 10;
/** Of these for single queues, while lists wait too. */
const singlesInSlice = 8;
/** Rest owed for reads: at most 1,000 a second, and about a fifth of the time of the ready queue. */
const restMsPerRead = 1;
const restShare = 4;
/** So much may be owed: a page of queues is read without a rest. */
const creditMs = 300;
const longestRestMs = 100;
/** Lists take a value that is no older, whoever it was read for. */
const sharedForMs = 1_000;
/** Where too many wait, lists take one up to this age. */
const keptForMs = 15_000;
const maxSinglesWaiting = 100;
const maxListedWaiting = 2_000;

/** A read that has not begun: whoever asks for the same queue meanwhile gets its answer too. */
interface Wanted {
  readonly answer: Promise<LiveQueue>;
  readonly begin: () => Promise<void>;
}

interface Known {
  readonly live: LiveQueue;
  readonly readAtMs: number;
}

/**
 * The live state of queues for people and programs that look. All reads share one line, and go to the ready queue a
 * few at a time with rests between: takes and submits of all servers wait behind one slice at most, however many look.
 */
export class LiveQueues {
  readonly #ready: Pick<ReadyQueue, 'live' | 'trouble'>;
  readonly #singles = new Map<string, Wanted>();
  readonly #listed = new Map<string, Wanted>();
  /** The oldest first. */
  readonly #known = new Map<string, Known>();
  #isReading = false;
  /** When all rest that is owed would be over. */
  #restedAtMs = 0;

  constructor(ready: Pick<ReadyQueue, 'live' | 'trouble'>) {
    this.#ready = ready;
  }

  /** As it is now: the read begins after the question. */
  now(queue: string): Promise<LiveQueue> {
    return this.#ask(this.#singles, queue);
  }

  /** The same, refused while too many wait. */
  nowUnlessBusy(queue: string): Promise<LiveQueue> {
    if (!this.#singles.has(queue) && this.#singles.size >= maxSinglesWaiting) throw tooMany();
    return this.now(queue);
  }

  /** The same of many, behind those who ask for one. */
  allNow(queues: readonly string[]): Promise<ReadonlyMap<string, LiveQueue>> {
    return this.#all(queues, (queue) => this.#ask(this.#listed, queue));
  }

  /** As they were in the last second. */
  lately(queues: readonly string[]): Promise<ReadonlyMap<string, LiveQueue>> {
    return this.#all(queues, (queue) => this.#lately(queue, sharedForMs));
  }

  /** The same. While too many wait, as they were some seconds ago; refused where that is not known. */
  latelyUnlessBusy(queues: readonly string[]): Promise<ReadonlyMap<string, LiveQueue>> {
    if (this.#listed.size < maxListedWaiting) return this.lately(queues);
    if (!queues.every((queue) => this.#knownFor(queue, keptForMs) !== null)) throw tooMany();
    return this.#all(queues, (queue) => this.#lately(queue, keptForMs));
  }

  async #all(
    queues: readonly string[],
    ask: (queue: string) => Promise<LiveQueue>,
  ): Promise<ReadonlyMap<string, LiveQueue>> {
    return new Map(
      await Promise.all(queues.map(async (queue) => [queue, await ask(queue)] as const)),
    );
  }

  async #lately(queue: string, maxAgeMs: number): Promise<LiveQueue> {
    return this.#knownFor(queue, maxAgeMs) ?? (await this.#ask(this.#listed, queue));
  }

  #knownFor(queue: string, maxAgeMs: number): LiveQueue | null {
    const known = this.#known.get(queue);
    const isFresh = known !== undefined && performance.now() - known.readAtMs < maxAgeMs;
    return isFresh ? known.live : null;
  }

  #ask(line: Map<string, Wanted>, queue: string): Promise<LiveQueue> {
    const wanted = line.get(queue) ?? this.#wanted(queue);
    line.set(queue, wanted);
    if (!this.#isReading) void this.#readAll();
    return wanted.answer;
  }

  #wanted(queue: string): Wanted {
    let begin = (): Promise<void> => Promise.resolve();
    const answer = new Promise<LiveQueue>((resolve, reject) => {
      begin = () => this.#read(queue).then(resolve, reject);
    });
    return { answer, begin };
  }

  async #readAll(): Promise<void> {
    this.#isReading = true;
    // Those who ask at the same moment are in the first slice too.
    await Promise.resolve();
    for (let slice = this.#nextSlice(); slice.length > 0; slice = this.#nextSlice()) {
      const beganMs = performance.now();
      await Promise.all(slice.map(({ begin }) => begin()));
      const tookMs = performance.now() - beganMs;
      this.#forgetOld();
      const restMs = this.#restMs(slice.length, tookMs);
      if (restMs > 0) await delay(restMs);
    }
    this.#isReading = false;
  }

  #restMs(reads: number, tookMs: number): number {
    if (this.#ready.trouble() !== null) return 0;
    const nowMs = performance.now();
    const owedMs = Math.min(longestRestMs, Math.max(reads * restMsPerRead, tookMs * restShare));
    this.#restedAtMs = Math.max(this.#restedAtMs, nowMs) + owedMs;
    return Math.min(longestRestMs, this.#restedAtMs - nowMs - creditMs);
  }

  #nextSlice(): Wanted[] {
    const singles = Math.max(singlesInSlice, sliceSize - this.#listed.size);
    const slice = takeFrom(this.#singles, singles);
    return [...slice, ...takeFrom(this.#listed, sliceSize - slice.length)];
  }

  /** Nothing is asked of a ready queue that is away: each question would wait until it is given up. */
  async #read(queue: string): Promise<LiveQueue> {
    if (this.#ready.trouble() !== null) return liveQueue(null, 0);
    const live = await this.#ready.live(queue);
    this.#known.delete(queue);
    this.#known.set(queue, { live, readAtMs: performance.now() });
    return live;
  }

  #forgetOld(): void {
    const oldestMs = performance.now() - keptForMs;
    for (const [queue, { readAtMs }] of this.#known) {
      if (readAtMs >= oldestMs) return;
      this.#known.delete(queue);
    }
  }
}

function takeFrom(line: Map<string, Wanted>, most: number): Wanted[] {
  const taken = [...line].slice(0, most);
  for (const [queue] of taken) line.delete(queue);
  return taken.map(([, wanted]) => wanted);
}

function tooMany(): SluiceError {
  const detail =
    'Too many ask how queues are doing. Ask again in a second, and for fewer queues at once.';
  return new SluiceError('unavailable', detail, { retryAfterSeconds: 1 });
}
