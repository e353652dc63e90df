import type { Circuit } from '../domain/circuit.js';
import type { HeldBackBy } from '../ready/ready-queue.js';
import { otherNames } from '../domain/other-names.js';
import { priorities } from '../domain/priority.js';
import type { ThrottleReason } from '../domain/throttle-reason.js';
import type { QueueLine } from './line.js';

/** Queues that are told by their name: the first that were held back. All others are told together. */
const maxQueues = 200;
/** Between two looks; after a pause of this process nobody knows what was in between. */
const longestSpanSeconds = 15;

/** For how long queues were held back while work was ready, as seen by looks every few seconds. */
export class Throttling {
  readonly #seconds = new Map<string, Map<ThrottleReason, number>>();

  note(
    lines: ReadonlyMap<string, QueueLine>,
    circuitOf: (queue: string) => Circuit,
    spanSeconds: number,
  ): void {
    const seconds = Math.min(spanSeconds, longestSpanSeconds);
    for (const [queue, { heldBackBy, waiting }] of lines) {
      if (heldBackBy === null || priorities.every((one) => waiting[one].count === 0)) continue;
      this.#add(queue, throttleReason(heldBackBy, circuitOf(queue)), seconds);
    }
  }

  *[Symbol.iterator](): Iterator<{
    readonly queue: string;
    readonly reason: ThrottleReason;
    readonly seconds: number;
  }> {
    for (const [queue, reasons] of this.#seconds) {
      for (const [reason, seconds] of reasons) yield { queue, reason, seconds };
    }
  }

  #add(queue: string, reason: ThrottleReason, seconds: number): void {
    const isOwn = this.#seconds.has(queue) || this.#seconds.size < maxQueues;
    const label = isOwn ? queue : otherNames;
    const reasons = this.#seconds.get(label) ?? new Map<ThrottleReason, number>();
    this.#seconds.set(label, reasons.set(reason, (reasons.get(reason) ?? 0) + seconds));
  }
}

export function throttleReason(heldBackBy: HeldBackBy, circuit: Circuit): ThrottleReason {
  switch (heldBackBy) {
    case 'pause':
      // The ready queue is told of an open circuit as of a pause.
      if (circuit.kind !== 'open') return 'paused';
      return circuit.reason === 'rate_limited' ? 'pushed_back' : 'circuit_open';
    case 'probes':
      return 'circuit_half_open';
    case 'max_concurrency':
    case 'rate_limit':
      return heldBackBy;
  }
}
