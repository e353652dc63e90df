import type { JsonValue } from '../../domain/json.js';
import type { NoteAge, Place, ReadyQueue, Taken, Wake, Window } from '../ready-queue.js';
import { received, type ForwardedMethod } from './messages.js';

/** What the leader's feeder has to know of other processes' calls. */
export interface HostedCalls {
  /** Rows of these windows were left in line. */
  readonly onLeft: (windows: readonly Window[]) => void;
  readonly onTaken: (entries: readonly Taken[]) => void;
}

export interface HostedAnswer {
  /** What the call made takeable. */
  readonly wakes: readonly Wake[];
  readonly answer: Promise<JsonValue>;
}

/** The leader's side: does what other processes ask of the ready queue. */
export class CallHost {
  readonly #queue: ReadyQueue;
  readonly #isOpen: () => boolean;
  /** Null: no call of another process runs. */
  #wakes: Wake[] | null = null;
  #hosted: HostedCalls = { onLeft: () => undefined, onTaken: () => undefined };

  /** `isOpen`: the queue has its contents. */
  constructor(queue: ReadyQueue, isOpen: () => boolean) {
    this.#queue = queue;
    this.#isOpen = isOpen;
  }

  /** What a task used would be booked before the levels of its limits are there, and be lost with them. */
  canRun(method: ForwardedMethod): boolean {
    return method !== 'finish' || this.#isOpen();
  }

  tell(hosted: HostedCalls): void {
    this.#hosted = hosted;
  }

  /** True: the wake is of a call that runs just now, and is its caller's. */
  caught(wake: Wake): boolean {
    this.#wakes?.push(wake);
    return this.#wakes !== null;
  }

  /** A method of the queue has told its wakes when it returns, before its answer. */
  run(method: ForwardedMethod, args: readonly JsonValue[]): HostedAnswer {
    const wakes: Wake[] = [];
    this.#wakes = wakes;
    try {
      return { wakes, answer: this.#run(method, args) };
    } finally {
      this.#wakes = null;
    }
  }

  /** The arguments were JSON on the way: a method of the queue takes them as they are. */
  async #run(method: ForwardedMethod, args: readonly JsonValue[]): Promise<JsonValue> {
    if (method === 'survey') return this.#survey();
    if (method === 'leave') {
      const [places] = args as unknown as readonly [readonly Place[]];
      this.#hosted.onLeft(places);
      return this.#queue.leave(places.map(received));
    }
    const call = this.#queue[method].bind(this.#queue) as (
      ...given: readonly JsonValue[]
    ) => Promise<unknown>;
    const answer = await call(...args);
    this.#note(method, args, answer);
    return (answer ?? null) as JsonValue;
  }

  #note(method: ForwardedMethod, args: readonly JsonValue[], answer: unknown): void {
    const [first] = args as unknown as readonly [readonly Window[]];
    if (method === 'take') {
      const { kind, entries } = answer as { kind: string; entries: readonly Taken[] };
      if (kind === 'taken') this.#hosted.onTaken(entries);
    } else if (method === 'offer') {
      const { outcomes = [] } = answer as { outcomes?: readonly string[] };
      if (outcomes.includes('left')) {
        this.#hosted.onLeft(first.filter((_, index) => outcomes[index] === 'left'));
      }
    }
  }

  async #survey(): Promise<JsonValue> {
    const ages: Parameters<NoteAge>[] = [];
    const queues = await this.#queue.survey((...age) => ages.push(age));
    return { queues, ages } as unknown as JsonValue;
  }
}
