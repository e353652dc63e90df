import { routingGroupKey, type Lane } from '../domain/lane.js';
import { IdleList } from './idle-list.js';
import { MatchingGroups } from './matching-groups.js';
import { QueueState } from './queue-state.js';
import { ReadyLane, type Queue } from './ready-lane.js';
import type { TakeRequest } from './ready-queue.js';
import { RoutingGroup, type GroupTraits } from './routing-group.js';
import { sharedKey } from './shared-limits.js';

/**
 * Queues and lanes come and go by name, millions over time. Those that emptied are remembered, up
 * to here: a queue for its turn and its version, a lane because its next task is likely to come.
 */
const maxIdle = 10_000;

/** Which queues, lanes and routing groups there are: made on first use, forgotten when idle. */
export class LaneDirectory {
  readonly #queues = new Map<string, Queue>();
  readonly #groups = new Map<string, RoutingGroup<ReadyLane>>();
  /** By the name of a limit that their queues share. */
  readonly #sharing = new Map<string, Set<RoutingGroup<ReadyLane>>>();
  readonly #matching = new MatchingGroups({ [Symbol.iterator]: () => this.#groups.values() });
  readonly #idleQueues = new IdleList<Queue>(maxIdle, (queue) => {
    this.#forgetQueue(queue);
  });
  readonly #idleLanes = new IdleList<ReadyLane>(maxIdle, (lane) => {
    this.#forgetLane(lane);
  });

  /** How many of each exist, idle ones included. */
  get sizes(): { readonly queues: number; readonly lanes: number; readonly groups: number } {
    let lanes = 0;
    for (const group of this.#groups.values()) lanes += group.laneCount;
    return { queues: this.#queues.size, lanes, groups: this.#groups.size };
  }

  findQueue(name: string): Queue | null {
    return this.#queues.get(name) ?? null;
  }

  /** The queue of this name, made if there is none. */
  ensureQueue(name: string): Queue {
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      queue = new QueueState(name);
      this.#queues.set(name, queue);
    }
    return queue;
  }

  findLane(lane: Lane): ReadyLane | null {
    return this.#queues.get(lane.queue)?.findLane(routingGroupKey(lane)) ?? null;
  }

  ensureLane(lane: Lane): ReadyLane {
    const queue = this.ensureQueue(lane.queue);
    const route = routingGroupKey(lane);
    let readyLane = queue.findLane(route);
    if (readyLane === null) {
      const group = this.#ensureGroup(route, { ...lane, shared: queue.shared });
      readyLane = new ReadyLane(lane, queue, group);
      queue.addLane(readyLane);
      group.laneCount += 1;
    }
    return readyLane;
  }

  /** To be told when a queue has come to share other limits: its lanes wait with others now. */
  regroup(queue: Queue, nowMs: number): void {
    for (const lane of queue.lanes) {
      lane.group.leave(lane);
      this.#leaveGroup(lane);
      lane.group = this.#ensureGroup(lane.route, { ...lane.lane, shared: queue.shared });
      lane.group.laneCount += 1;
      lane.group.reopen(lane, nowMs);
    }
  }

  /** The groups whose queues share this limit. */
  groupsSharing(limit: string): Iterable<RoutingGroup<ReadyLane>> {
    return this.#sharing.get(limit) ?? [];
  }

  /** The groups that hold something this worker can do. */
  groupsFor(request: TakeRequest): RoutingGroup<ReadyLane>[] {
    return this.#matching.of(request).filter((group) => !group.holdsNothing);
  }

  /** To be told after a queue may have become idle, or ceased to be. */
  noteQueue(queue: Queue): void {
    if (queue.isIdle) this.#idleQueues.add(queue);
    else this.#idleQueues.delete(queue);
  }

  noteLane(lane: ReadyLane): void {
    if (lane.isIdle) this.#idleLanes.add(lane);
    else this.#idleLanes.delete(lane);
  }

  clear(): void {
    this.#queues.clear();
    this.#groups.clear();
    this.#sharing.clear();
    this.#idleQueues.clear();
    this.#idleLanes.clear();
    this.#matching.changed();
  }

  #ensureGroup(route: string, traits: GroupTraits): RoutingGroup<ReadyLane> {
    const key = `${route}\n${sharedKey(traits.shared)}`;
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = new RoutingGroup(key, route, traits);
      this.#groups.set(key, group);
      for (const { name } of group.shared) this.#sharingOf(name).add(group);
      this.#matching.changed();
    }
    return group;
  }

  #sharingOf(limit: string): Set<RoutingGroup<ReadyLane>> {
    let sharing = this.#sharing.get(limit);
    if (sharing === undefined) {
      sharing = new Set();
      this.#sharing.set(limit, sharing);
    }
    return sharing;
  }

  #forgetQueue(queue: Queue): void {
    for (const lane of queue.lanes) {
      this.#idleLanes.delete(lane);
      this.#forgetLane(lane);
    }
    this.#queues.delete(queue.name);
  }

  #forgetLane(lane: ReadyLane): void {
    lane.group.leave(lane);
    lane.queue.removeLane(lane);
    this.#leaveGroup(lane);
  }

  #leaveGroup({ group }: ReadyLane): void {
    group.laneCount -= 1;
    if (group.laneCount > 0) return;
    this.#groups.delete(group.key);
    for (const { name } of group.shared) this.#sharingOf(name).delete(group);
    this.#matching.changed();
  }
}
