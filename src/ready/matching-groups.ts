import type { TakeRequest } from './ready-queue.js';

/**
 * Fleets ask with a handful of filters; one that names its types at random must not fill memory. A
 * filter may name a thousand types, and match ten thousand groups.
 */
const maxRemembered = 1_000;
const maxBytes = 16 * 1024 * 1024;

interface Group {
  readonly taskType: string;
  readonly capabilities: readonly string[];
}

type Filter = Pick<TakeRequest, 'taskTypes' | 'capabilities'>;

/** Which routing groups a worker can do, remembered for each filter that workers ask with. */
export class MatchingGroups<G extends Group> {
  readonly #groups: Iterable<G>;
  readonly #remembered = new Map<string, readonly G[]>();
  #bytes = 0;

  constructor(groups: Iterable<G>) {
    this.#groups = groups;
  }

  of(filter: Filter): readonly G[] {
    const key = filterKey(filter);
    let matching = this.#remembered.get(key);
    if (matching === undefined) {
      matching = this.#find(filter);
      this.#remember(key, matching);
    }
    return matching;
  }

  /** How many filters are remembered. */
  get remembered(): number {
    return this.#remembered.size;
  }

  /** To be told when a group came or went. */
  changed(): void {
    this.#remembered.clear();
    this.#bytes = 0;
  }

  #remember(key: string, matching: readonly G[]): void {
    const bytes = 2 * key.length + 8 * matching.length;
    if (this.#remembered.size >= maxRemembered || this.#bytes + bytes > maxBytes) this.changed();
    this.#remembered.set(key, matching);
    this.#bytes += bytes;
  }

  #find(filter: Filter): G[] {
    const taskTypes = filter.taskTypes === null ? null : new Set(filter.taskTypes);
    const capabilities = new Set(filter.capabilities);
    const matching: G[] = [];
    for (const group of this.#groups) {
      const handled = taskTypes === null || taskTypes.has(group.taskType);
      if (handled && group.capabilities.every((name) => capabilities.has(name))) {
        matching.push(group);
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
