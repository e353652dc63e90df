import { everyType, routingGroupKey, type Lane } from '../../domain/lane.js';
import type { PriorityRank } from '../../domain/priority.js';
import { IdleList } from './idle-list.js';
import { MatchingGroups } from '../matching-groups.js';
import { QueueState } from './queue-state.js';
import { ReadyLane, type MergedLane, type Queue, type TakeLane } from './ready-lane.js';
import type { TakeRequest } from '../ready-queue.js';
import { RoutingGroup, type GroupTraits } from './routing-group.js';
import { sharedKey } from './shared-limits.js';
import { WildcardLane } from './wildcard-lane.js';

/**
 * Queues and lanes come and go by name, millions over time. Those that emptied are remembered, up
 * to here: a queue for its turn and its version, a lane because its next task is likely to come.
 */
const maxIdle = 10_000;

/** A take compares the first lane of each. */
const maxGroups = 1_000;
const alwaysLookedAt = 100;

export interface LookedAt {
  readonly groups: readonly RoutingGroup<TakeLane>[];
  /** False: there are more that this worker can do. */
  readonly areAll: boolean;
}

function wildcardKey(queue: Queue, { capabilities }: Pick<GroupTraits, 'capabilities'>): string {
  return `${queue.name}\n${capabilities.join('\t')}`;
}

/** Which queues, lanes and routing groups there are: made on first use, forgotten when idle. */
export class LaneDirectory {
  readonly #queues = new Map<string, Queue>();
  readonly #groups = new Map<string, RoutingGroup<TakeLane>>();
  /** By the name of a limit that their queues share. */
  readonly #sharing = new Map<string, Set<RoutingGroup<TakeLane>>>();
  readonly #matching = new MatchingGroups<RoutingGroup<TakeLane>>();
  /** By queue and capability set; null until a worker asks for every type. */
  #wildcards: Map<string, WildcardLane> | null = null;
  #turns = 0;
  readonly #idleQueues = new IdleList<Queue>(maxIdle, (queue) => {
    this.#forgetQueue(queue);
  });
  readonly #idleLanes = new IdleList<ReadyLane>(maxIdle, (lane) => {
    this.#forgetLane(lane);
  });

  /** How many of each exist, idle ones included. */
  get sizes(): { readonly queues: number; readonly lanes: number; readonly groups: number } {
    let lanes = 0;
    let groups = 0;
    for (const { taskType, laneCount } of this.#groups.values()) {
      if (taskType === everyType) continue;
      lanes += laneCount;
      groups += 1;
    }
    return { queues: this.#queues.size, lanes, groups };
  }

  findQueue(name: string): Queue | null {
    return this.#queues.get(name) ?? null;
  }

  /** As they are now: some may be gone when they are looked at. */
  queues(): readonly Queue[] {
    return [...this.#queues.values()];
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
      if (this.#wildcards !== null) this.#enterWildcard(readyLane, this.#wildcards);
    }
    return readyLane;
  }

  /** To be told when the oldest entry of a rank is another one. */
  noteHead(lane: ReadyLane, rank: PriorityRank, nowMs: number): void {
    lane.group.reopen(lane, nowMs);
    const { wildcard } = lane;
    if (wildcard === null) return;
    wildcard.noteHead(lane, rank);
    wildcard.group.reopen(wildcard, nowMs);
  }

  /** To be told when a queue has come to share other limits: its lanes wait with others now. */
  regroup(queue: Queue, nowMs: number): void {
    const wildcards = new Set<TakeLane>();
    for (const lane of queue.lanes()) {
      this.#regroup(lane, lane.lane, nowMs);
      if (lane.wildcard !== null) wildcards.add(lane.wildcard);
    }
    for (const lane of wildcards) this.#regroup(lane, lane.group, nowMs);
  }

  /** To be told when its entries age otherwise. */
  reopenAll(queue: Queue, nowMs: number): void {
    for (const lane of queue.lanes()) {
      lane.group.reopen(lane, nowMs);
      lane.wildcard?.group.reopen(lane.wildcard, nowMs);
    }
  }

  /** The groups whose queues share this limit. */
  groupsSharing(limit: string): Iterable<RoutingGroup<TakeLane>> {
    return this.#sharing.get(limit) ?? [];
  }

  /**
   * The groups that hold something this worker can do; of very many capability sets some, by turns, and
   * those that need the fewest capabilities each time.
   */
  groupsFor(request: TakeRequest): LookedAt {
    if (request.taskTypes === null && this.#wildcards === null) this.#beginWildcards();
    const matching = this.#matching.of(request);
    const areAll = matching.length <= maxGroups;
    const groups = areAll ? matching : this.#someOf(matching);
    return { groups: groups.filter((group) => !group.holdsNothing), areAll };
  }

  /** What a request that names queues takes from. */
  lanesFor(queue: Queue, groups: readonly RoutingGroup<TakeLane>[]): TakeLane[] {
    return groups.flatMap((group) => {
      const lane =
        group.taskType === everyType
          ? this.#wildcards?.get(wildcardKey(queue, group))
          : queue.findLane(group.route);
      return lane?.group === group ? [lane] : [];
    });
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
    this.#matching.clear();
    this.#wildcards?.clear();
  }

  #ensureGroup(route: string, traits: GroupTraits): RoutingGroup<TakeLane> {
    const key = `${route}\n${sharedKey(traits.shared)}`;
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = new RoutingGroup(key, route, traits);
      this.#groups.set(key, group);
      for (const { name } of group.shared) this.#sharingOf(name).add(group);
      this.#matching.add(group);
    }
    return group;
  }

  #sharingOf(limit: string): Set<RoutingGroup<TakeLane>> {
    let sharing = this.#sharing.get(limit);
    if (sharing === undefined) {
      sharing = new Set();
      this.#sharing.set(limit, sharing);
    }
    return sharing;
  }

  #forgetQueue(queue: Queue): void {
    for (const lane of queue.lanes()) {
      this.#idleLanes.delete(lane);
      this.#forgetLane(lane);
    }
    this.#queues.delete(queue.name);
  }

  #forgetLane(lane: ReadyLane): void {
    lane.group.leave(lane);
    lane.queue.removeLane(lane);
    this.#leaveGroup(lane);
    if (lane.wildcard !== null) this.#leaveWildcard(lane.wildcard);
  }

  /** Made for all lanes when the first worker asks for every type, and kept from then on. */
  #beginWildcards(): void {
    const wildcards = new Map<string, WildcardLane>();
    this.#wildcards = wildcards;
    for (const queue of this.#queues.values()) {
      for (const lane of queue.lanes()) this.#enterWildcard(lane, wildcards);
    }
  }

  #enterWildcard(lane: ReadyLane, wildcards: Map<string, WildcardLane>): void {
    const { queue } = lane;
    const { capabilities } = lane.lane;
    const key = wildcardKey(queue, { capabilities });
    let wildcard = wildcards.get(key);
    if (wildcard === undefined) {
      const traits = { taskType: everyType, capabilities, shared: queue.shared };
      wildcard = new WildcardLane(queue, this.#ensureGroup(routingGroupKey(traits), traits));
      wildcard.group.laneCount += 1;
      wildcards.set(key, wildcard);
    }
    lane.wildcard = wildcard;
    wildcard.laneCount += 1;
    if (lane.size === 0) return;
    wildcard.noteHeads(lane);
    // As if nothing had aged: what has is due at the next look.
    wildcard.group.reopen(wildcard, Number.NEGATIVE_INFINITY);
  }

  #leaveWildcard(wildcard: MergedLane): void {
    wildcard.laneCount -= 1;
    if (wildcard.laneCount > 0) return;
    this.#wildcards?.delete(wildcardKey(wildcard.queue, wildcard.group));
    wildcard.group.leave(wildcard);
    this.#leaveGroup(wildcard);
  }

  #regroup(lane: TakeLane, traits: Omit<GroupTraits, 'shared'>, nowMs: number): void {
    const { route } = lane.group;
    lane.group.leave(lane);
    this.#leaveGroup(lane);
    const { taskType, capabilities } = traits;
    lane.group = this.#ensureGroup(route, { taskType, capabilities, shared: lane.queue.shared });
    lane.group.laneCount += 1;
    lane.group.reopen(lane, nowMs);
  }

  #someOf(matching: readonly RoutingGroup<TakeLane>[]): RoutingGroup<TakeLane>[] {
    const sorted = matching.toSorted((a, b) => a.capabilities.length - b.capabilities.length);
    const rest = sorted.slice(alwaysLookedAt);
    this.#turns += 1;
    const from = (this.#turns * (maxGroups - alwaysLookedAt)) % rest.length;
    const inTurn = [...rest.slice(from), ...rest.slice(0, from)];
    return [...sorted.slice(0, alwaysLookedAt), ...inTurn.slice(0, maxGroups - alwaysLookedAt)];
  }

  #leaveGroup({ group }: TakeLane): void {
    group.laneCount -= 1;
    if (group.laneCount > 0) return;
    this.#groups.delete(group.key);
    for (const { name } of group.shared) this.#sharingOf(name).delete(group);
    this.#matching.delete(group);
  }
}
