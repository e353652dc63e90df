import type { Lease, TaskId, WorkerId } from '../../src/domain/ids.js';
import type { WorkerOffer } from '../../src/protocol/workers-api.js';
import type { Delivered } from './ledger.js';

/** A worker as the others see it: what it says, and what it holds. */
export class SimulatedWorker {
  readonly name: string;
  readonly offer: WorkerOffer;
  readonly capacity: number;
  workerId: WorkerId | null = null;
  isRegistering = false;
  /** Says nothing, and goes on working. */
  isSilent = false;
  /** Gone for good, with all it knew. */
  isDead = false;
  polls = 0;
  lastBeatMs = 0;
  readonly #held = new Map<Lease, Delivered>();

  constructor(name: string, offer: WorkerOffer, capacity: number) {
    this.name = name;
    this.offer = offer;
    this.capacity = capacity;
  }

  get held(): readonly Delivered[] {
    return [...this.#held.values()];
  }

  get freeSlots(): number {
    return Math.max(0, this.capacity - this.#held.size);
  }

  hold(delivered: Delivered): void {
    this.#held.set(delivered.lease, delivered);
  }

  /** It no longer works on it. */
  letGo(lease: Lease): void {
    const delivered = this.#held.get(lease);
    if (delivered !== undefined) delivered.hasLetGo = true;
    this.#held.delete(lease);
  }

  letGoOfTasks(taskIds: readonly TaskId[]): void {
    for (const { taskId, lease } of this.held) if (taskIds.includes(taskId)) this.letGo(lease);
  }

  die(): void {
    this.isDead = true;
    for (const { lease } of this.held) this.letGo(lease);
  }
}
