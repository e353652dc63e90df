import { routingGroupKey } from '../../domain/lane.js';
import { MatchingGroups } from '../matching-groups.js';
import type { TakeRequest } from '../ready-queue.js';
import { inChunks } from './in-chunks.js';
import type { Argument } from './script-runner.js';

interface Source {
  readonly key: string;
  readonly group: string;
  readonly taskType: string;
  readonly capabilities: readonly string[];
}

/** A script looks at each: more than this are asked for by several takes. */
const maxAtOnce = 120;
/** Of many, those that are in every part. */
const inEveryPart = 40;
const maxParts = 100;

/**
 * Which sources there are in Redis, and which of them a worker can do: remembered here, so that a
 * take names them and Redis need not search. A take with an outdated list is answered with what is new.
 */
export class SourceList {
  #version = '';
  #turns = 0;
  readonly #matching = new MatchingGroups<Source>();

  get version(): string {
    return this.#version;
  }

  /** `isMore`: these come besides those that are known. */
  update(version: string, isMore: boolean, keys: readonly string[]): void {
    this.#version = version;
    if (!isMore) this.#matching.clear();
    for (const key of keys) this.#matching.add(parseSource(key));
  }

  /** Arguments of takes, as the script reads them after version and count: one take, as a rule. */
  partsFor(request: TakeRequest): readonly (readonly Argument[])[] {
    const matching = this.#matching.of(request);
    const kind = request.taskTypes === null ? 'all' : 'some';
    if (request.queues === null) {
      return this.#inParts(matching).map((part) => [kind, 0, ...part.map(({ key }) => key)]);
    }
    const names = [...new Set(request.queues)];
    return this.#inParts(matching).flatMap((part) => {
      const groups = [...new Set(part.map(({ group }) => group))];
      const namesAtOnce = Math.max(1, Math.floor(maxAtOnce / Math.max(1, groups.length)));
      return inChunks(names, namesAtOnce).map((some) => [
        ...[`${kind}-named`, some.length, ...some, ...groups],
      ]);
    });
  }

  /**
   * Of several parts a different one is the first each time, and those that need the fewest capabilities
   * are in all of them: sets that somebody makes up do not hold up those that are in use.
   */
  #inParts(sources: readonly Source[]): readonly (readonly Source[])[] {
    if (sources.length <= maxAtOnce) return [sources];
    const sorted = sources.toSorted((a, b) => a.capabilities.length - b.capabilities.length);
    const first = sorted.slice(0, inEveryPart);
    const parts = inChunks(sorted.slice(inEveryPart), maxAtOnce - inEveryPart);
    this.#turns += 1;
    const turn = this.#turns % parts.length;
    const inTurn = [...parts.slice(turn), ...parts.slice(0, turn)].slice(0, maxParts);
    return inTurn.map((part) => [...first, ...part]);
  }
}

/** The shared limits of its queues, then the routing group of its lanes. */
function parseSource(key: string): Source {
  const [, taskType = '', joined = ''] = key.split('\n');
  const capabilities = joined === '' ? [] : joined.split('\t');
  const group = routingGroupKey({ taskType, capabilities });
  return { key, group, taskType, capabilities };
}
