import { otherNames } from '../../domain/other-names.js';
import type { TaskEvent } from '../../protocol/events.js';

/** Pairs of a queue and a task type that tasks are counted by; tasks of all further ones count as others. */
const maxPairs = 100;
/** Pairs that have histograms of their own: each of them is up to 500 lines. */
const maxTimedPairs = 20;

export interface CountedPair {
  readonly queue: string;
  readonly task_type: string;
  /** What its times are told under. */
  readonly timed: { readonly queue: string; readonly task_type: string };
  /** Transitions since they were told last, by `from`, then by `to`. */
  readonly untold: Partial<Record<TaskEvent['from'], Partial<Record<TaskEvent['to'], number>>>>;
}

const others = { queue: otherNames, task_type: otherNames };

/** The first pairs of queue and task type that were seen, and one for all others. */
export class CountedPairs {
  readonly #byQueue = new Map<string, Map<string, CountedPair>>();
  readonly #all: CountedPair[] = [];
  #others: CountedPair | null = null;

  of({ queue, taskType }: Pick<TaskEvent, 'queue' | 'taskType'>): CountedPair {
    return this.#byQueue.get(queue)?.get(taskType) ?? this.#add(queue, taskType);
  }

  #add(queue: string, taskType: string): CountedPair {
    if (this.#all.length > maxPairs) return this.#others ?? this.#create(otherNames, otherNames);
    if (this.#all.length === maxPairs) return (this.#others = this.#create(otherNames, otherNames));
    const pair = this.#create(queue, taskType);
    const ofQueue = this.#byQueue.get(queue) ?? new Map<string, CountedPair>();
    this.#byQueue.set(queue, ofQueue.set(taskType, pair));
    return pair;
  }

  #create(queue: string, taskType: string): CountedPair {
    const own = { queue, task_type: taskType };
    const timed = this.#all.length < maxTimedPairs ? own : others;
    const pair = { ...own, timed, untold: {} };
    this.#all.push(pair);
    return pair;
  }

  [Symbol.iterator](): Iterator<CountedPair> {
    return this.#all[Symbol.iterator]();
  }
}
