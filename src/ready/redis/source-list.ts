import { MatchingGroups } from '../matching-groups.js';
import { routingGroupKey } from '../../domain/lane.js';
import type { TakeRequest } from '../ready-queue.js';
import type { Argument } from './script-runner.js';

interface Source {
  readonly key: string;
  readonly group: string;
  readonly taskType: string;
  readonly capabilities: readonly string[];
}

/**
 * Which sources there are in Redis, and which of them a worker can do: remembered here, so that a
 * take names them and Redis need not search. A take with an outdated list is answered with the new one.
 */
export class SourceList {
  #version = '';
  #sources: readonly Source[] = [];
  readonly #matching = new MatchingGroups<Source>({
    [Symbol.iterator]: () => this.#sources[Symbol.iterator](),
  });

  update(version: string, keys: readonly string[]): void {
    this.#version = version;
    this.#sources = keys.map(parseSource);
    this.#matching.changed();
  }

  /** As the take script reads them. */
  argumentsFor(request: TakeRequest): Argument[] {
    const matching = this.#matching.of(request);
    if (request.queues === null) {
      return [this.#version, request.count, 'all', 0, ...matching.map(({ key }) => key)];
    }
    const names = [...new Set(request.queues)];
    const groups = new Set(matching.map(({ group }) => group));
    return [this.#version, request.count, 'named', names.length, ...names, ...groups];
  }
}

/** The shared limits of its queues, then the routing group of its lanes. */
function parseSource(key: string): Source {
  const [, taskType = '', joined = ''] = key.split('\n');
  const capabilities = joined === '' ? [] : joined.split('\t');
  const group = routingGroupKey({ taskType, capabilities });
  return { key, group, taskType, capabilities };
}
