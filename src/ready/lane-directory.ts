import { routingGroupKey, type Lane } from '../domain/lane.js';
import { IdleSet } from './idle-set.js';
import { MatchingGroups } from './matching-groups.js';
import { QueueState } from './queue-state.js';
import { ReadyLane } from './ready-lane.js';
import type { TakeRequest } from './ready-queue.js';
import { RoutingGroup } from './routing-group.js';

/**
 * Queues and lanes come and go by name, millions over time. Those that emptied are remembered, up
 * to here: a queue for its turn and its version, a lane because its next task is likely to come.
 */
const maxIdle = 10_000;

/** Which queues, lanes and routing groups there are: made on first use, forgotten when idle. */
export class LaneDirectory {
  readonly #queues = new Map<string, QueueState<ReadyLane>>();
  readonly #groups = new Map<string, RoutingGroup<ReadyLane>>();
  readonly #matching = new MatchingGroups({ [Symbol.iterator]: () => this.#groups.values() });
  readonly #idleQueues = new IdleSet<QueueState<ReadyLane>>(maxIdle, (queue) => {
    this.#forgetQueue(queue);
  });
  readonly #idleLanes = new IdleSet<ReadyLane>(maxIdle, (lane) => {
    this.#forgetLane(lane);
  });

  /** How many of each exist, idle ones included. */
  get sizes(): { readonly queues: number; readonly lanes: number; readonly groups: number } {
    let lanes = 0;
    for (const group of this.#groups.values()) lanes += group.laneCount;
    return { queues: this.#queues.size, lanes, groups: this.#groups.size };
  }

  findQueue(name: string): QueueState<ReadyLane> | null {
    return this.#queues.get(name) ?? null;
  }

  /** The queue of this name, made if there is none. */
  ensureQueue(name: string): QueueState<ReadyLane> {
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      queue = new QueueState(name);
      this.#queues.set(name, queue);
    }
    return queue;
  }

  findLane(lane: Lane): ReadyLane | null {
    const group = this.#groups.get(routingGroupKey(lane));
    if (group === undefined) return null;
    return this.#queues.get(lane.queue)?.lanes.get(group) ?? null;
  }

  ensureLane(lane: Lane): ReadyLane {
    const queue = this.ensureQueue(lane.queue);
    const group = this.#ensureGroup(lane);
    let readyLane = queue.lanes.get(group);
    if (readyLane === undefined) {
      readyLane = new ReadyLane(lane, queue, group);
      queue.lanes.set(group, readyLane);
      group.laneCount += 1;
    }
    return readyLane;
  }

  /** The groups that hold something this worker can do. */
  groupsFor(request: TakeRequest): RoutingGroup<ReadyLane>[] {
    return this.#matching.of(request).filter((group) => !group.holdsNothing);
  }

  /** To be told after a queue may have become idle, or ceased to be. */
  noteQueue(queue: QueueState<ReadyLane>): void {
    if (queue.isIdle) this.#idleQueues.add(queue);
    else this.#idleQueues.delete(queue);
  }

  noteLane(lane: ReadyLane): void {
    if (lane.size === 0) this.#idleLanes.add(lane);
    else this.#idleLanes.delete(lane);
  }

  clear(): void {
    this.#queues.clear();
    this.#groups.clear();
    this.#idleQueues.clear();
    this.#idleLanes.clear();
    this.#matching.changed();
  }

  #ensureGroup(lane: Lane): RoutingGroup<ReadyLane> {
    const key = routingGroupKey(lane);
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = new RoutingGroup(key, lane.taskType, lane.capabilities);
      this.#groups.set(key, group);
      this.#matching.changed();
    }
    return group;
  }

  #forgetQueue(queue: QueueState<ReadyLane>): void {
    for (const lane of queue.lanes.values()) {
      this.#idleLanes.delete(lane);
      this.#forgetLane(lane);
    }
    this.#queues.delete(queue.name);
  }

  #forgetLane(lane: ReadyLane): void {
    const { group, queue } = lane;
    queue.lanes.delete(group);
    group.laneCount -= 1;
    if (group.laneCount > 0) return;
    this.#groups.delete(group.key);
    this.#matching.changed();
  }
}
