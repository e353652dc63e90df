import { defaultAgeing } from '../domain/priority.js';
import { defaultQueueSettings, type QueueSettings } from '../domain/queue-settings.js';
import { AgeingTable } from './ageing-table.js';
import type { GroupLane, RoutingGroup } from './routing-group.js';

const defaultAgeingTable = new AgeingTable(defaultAgeing);

/** What the ready queue knows of one queue: its settings, its lanes, its slots and its turn. */
export class QueueState<L extends GroupLane<L>> {
  readonly name: string;
  /** Null: never configured. */
  version: number | null = null;
  settings: QueueSettings = defaultQueueSettings;
  ageing: AgeingTable = defaultAgeingTable;
  readonly lanes = new Map<RoutingGroup<L>, L>();
  /** Lanes that left the index of their group until this queue opens. */
  readonly parked = new Set<L>();
  /** Waiting entries by submitted rank. */
  readonly depth: [number, number, number] = [0, 0, 0];
  /** Taken or running: what counts against `maxConcurrency`. */
  slotsInUse = 0;
  running = 0;
  /** Grows with every service, across all queues; 0 before the first offer. */
  turn = 0;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;
  #hasDefaults = true;

  constructor(name: string) {
    this.name = name;
  }

  get waiting(): number {
    return this.depth[0] + this.depth[1] + this.depth[2];
  }

  get freeSlots(): number {
    const { maxConcurrency } = this.settings;
    return maxConcurrency === null ? Number.POSITIVE_INFINITY : maxConcurrency - this.slotsInUse;
  }

  /** Holds nothing, and would be made again just as it is, but for its turn and version. */
  get isIdle(): boolean {
    return this.#hasDefaults && this.slotsInUse === 0 && this.waiting === 0;
  }

  /** `pausedUntilMs`: the settings' own instant, in the ready queue's time. */
  configure(version: number, settings: QueueSettings, pausedUntilMs: number | null): void {
    this.version = version;
    this.settings = settings;
    this.ageing = new AgeingTable(settings.ageing);
    this.#pausedUntilMs = settings.paused
      ? (pausedUntilMs ?? Number.POSITIVE_INFINITY)
      : Number.NEGATIVE_INFINITY;
    this.#hasDefaults = hasDefaults(settings);
  }

  /**
   * From when on this queue may be taken from: `nowMs` itself when it may now, infinity when not
   * before something happens (a slot is freed, the settings change). Whatever holds a queue back
   * answers here, and the latest of the reasons counts.
   */
  opensAt(nowMs: number): number {
    if (this.freeSlots <= 0) return Number.POSITIVE_INFINITY;
    return Math.max(nowMs, this.#pausedUntilMs);
  }
}

function hasDefaults(settings: QueueSettings): boolean {
  const { ageing } = settings;
  return (
    settings.limits.length === 0 &&
    settings.maxConcurrency === null &&
    settings.maxReady === defaultQueueSettings.maxReady &&
    !settings.paused &&
    ageing.lowToMediumMs === defaultAgeing.lowToMediumMs &&
    ageing.lowToHighMs === defaultAgeing.lowToHighMs &&
    ageing.mediumToHighMs === defaultAgeing.mediumToHighMs
  );
}
