import { everyType } from '../domain/lane.js';
import type { TakeRequest } from './ready-queue.js';

/**
 * Fleets ask with a handful of filters; one that names its types at random must not fill memory. A
 * filter may name a thousand types, and match ten thousand groups.
 */
const maxRemembered = 1_000;
const maxBytes = 16 * 1024 * 1024;

interface Group {
  readonly key: string;
  readonly taskType: string;
  readonly capabilities: readonly string[];
}

type Filter = Pick<TakeRequest, 'taskTypes' | 'capabilities'>;

interface Remembered<G> {
  readonly taskTypes: ReadonlySet<string>;
  readonly matching: readonly G[];
  readonly bytes: number;
}

/**
 * Which routing groups a worker can do, remembered for each filter that workers ask with. A worker for
 * every type is answered with the groups of `everyType` alone. So a group that comes or goes concerns the
 * filters that name its type, however many groups there are.
 */
export class MatchingGroups<G extends Group> {
  readonly #byType = new Map<string, Map<string, G>>();
  readonly #remembered = new Map<string, Remembered<G>>();
  #bytes = 0;

  of(filter: Filter): readonly G[] {
    const key = filterKey(filter);
    const known = this.#remembered.get(key);
    if (known !== undefined) return known.matching;
    const taskTypes = new Set(filter.taskTypes ?? [everyType]);
    const matching = this.#find(taskTypes, new Set(filter.capabilities));
    this.#remember(key, { taskTypes, matching, bytes: 2 * key.length + 8 * matching.length });
    return matching;
  }

  /** How many filters are remembered. */
  get remembered(): number {
    return this.#remembered.size;
  }

  add(group: G): void {
    let groups = this.#byType.get(group.taskType);
    if (groups === undefined) {
      groups = new Map<string, G>();
      this.#byType.set(group.taskType, groups);
    }
    groups.set(group.key, group);
    this.#forget(group.taskType);
  }

  delete({ taskType, key }: G): void {
    const groups = this.#byType.get(taskType);
    groups?.delete(key);
    if (groups?.size === 0) this.#byType.delete(taskType);
    this.#forget(taskType);
  }

  clear(): void {
    this.#byType.clear();
    this.#forgetAll();
  }

  #forget(taskType: string): void {
    for (const [key, { taskTypes, bytes }] of this.#remembered) {
      if (!taskTypes.has(taskType)) continue;
      this.#remembered.delete(key);
      this.#bytes -= bytes;
    }
  }

  #forgetAll(): void {
    this.#remembered.clear();
    this.#bytes = 0;
  }

  #remember(key: string, found: Remembered<G>): void {
    const isFull = this.#remembered.size >= maxRemembered || this.#bytes + found.bytes > maxBytes;
    if (isFull) this.#forgetAll();
    this.#remembered.set(key, found);
    this.#bytes += found.bytes;
  }

  #find(taskTypes: ReadonlySet<string>, capabilities: ReadonlySet<string>): G[] {
    const matching: G[] = [];
    for (const taskType of taskTypes) {
      for (const group of this.#byType.get(taskType)?.values() ?? []) {
        if (group.capabilities.every((name) => capabilities.has(name))) matching.push(group);
      }
    }
    return matching;
  }
}

/** Names can't hold the separators: see `laneKey`. */
function filterKey({ taskTypes, capabilities }: Filter): string {
  const types = taskTypes === null ? 'all' : `${taskTypes.length}\n${taskTypes.join('\n')}`;
  return `${types}\n\n${capabilities.join('\t')}`;
}
