import { routingGroupKey } from '../../domain/lane.js';
import { MatchingGroups } from '../matching-groups.js';
import type { TakeRequest } from '../ready-queue.js';
import { inChunks } from './in-chunks.js';
import type { RestOfTake } from './replies.js';
import type { Argument } from './script-runner.js';

interface Source {
  readonly key: string;
  readonly group: string;
  readonly taskType: string;
  readonly capabilities: readonly string[];
}

/** A script looks at each: more than this are asked for by several takes. */
const maxAtOnce = 120;
const leastAtOnce = 6;

/**
 * Which sources there are in Redis, and which of them a worker can do: remembered here, so that a
 * take names them and Redis need not search. A take with an outdated list is answered with what is new.
 */
export class SourceList {
  #version = '';
  /** Fewer while scripts look at fewer. */
  #atOnce = maxAtOnce;
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

  /**
   * Arguments of takes, as the script reads them after version and count: one take, as a rule. Each is made when it is
   * asked for: of a thousand queues and ten thousand sources there are a hundred thousand or more.
   */
  *partsFor(request: TakeRequest): Generator<readonly Argument[], void> {
    const matching = this.#matching.of(request);
    this.#atOnce = Math.min(maxAtOnce, this.#atOnce + 1);
    const atOnce = this.#atOnce;
    const kind = request.taskTypes === null ? 'all' : 'some';
    const names = request.queues === null ? null : [...new Set(request.queues)];
    for (const part of inParts(matching, atOnce)) {
      if (names === null) {
        yield [kind, 0, ...part.map(({ key }) => key)];
        continue;
      }
      const groups = [...new Set(part.map(({ group }) => group))];
      const namesAtOnce = Math.max(1, Math.floor(atOnce / Math.max(1, groups.length)));
      for (const some of inTurn(inChunks(names, namesAtOnce))) {
        yield [`${kind}-named`, some.length, ...some, ...groups];
      }
    }
  }

  /**
   * Of a part that a script did not do all of: without what can't give anything, and what it did not look at. Later
   * takes have smaller parts, of which another one is the first each time, so that none is always the last.
   */
  partsAfter(part: readonly Argument[], { entered, leftOut }: RestOfTake): readonly Argument[][] {
    const [kind = '', nameCount = 0, ...values] = part;
    const isByName = String(kind).endsWith('-named');
    const listed = isByName ? values.slice(0, Number(nameCount)) : values;
    const groups = values.slice(listed.length);
    const nameOf = (value: Argument) => (isByName ? String(value) : classOf(String(value)));
    if (entered !== null) this.#atOnce = Math.max(leastAtOnce, entered);
    const seen = listed.slice(0, entered ?? undefined);
    const unseen = entered === null ? [] : listed.slice(entered);
    return [seen.filter((value) => !leftOut.has(nameOf(value))), unseen]
      .filter((some) => some.length > 0)
      .map((some) => [kind, isByName ? some.length : 0, ...some, ...groups]);
  }
}

/**
 * Of several parts a different one is the first each time, and those that need the fewest capabilities
 * are in all of them: sets that somebody makes up do not hold up those that are in use.
 */
function* inParts(sources: readonly Source[], atOnce: number): Generator<readonly Source[], void> {
  if (sources.length <= atOnce) {
    yield sources;
    return;
  }
  const inEveryPart = Math.floor(atOnce / 3);
  const sorted = sources.toSorted((a, b) => a.capabilities.length - b.capabilities.length);
  const first = sorted.slice(0, inEveryPart);
  const parts = inChunks(sorted.slice(inEveryPart), atOnce - inEveryPart);
  for (const part of inTurn(parts)) yield [...first, ...part];
}

/** The shared limits of its queues. */
function classOf(key: string): string {
  return key.slice(0, key.indexOf('\n'));
}

/**
 * Any of them first: a take that is content with the first parts would else never come to the last ones. Not one after
 * the other: workers that ask by turns would each begin with the same part every time.
 */
function inTurn<Part>(parts: readonly Part[]): readonly Part[] {
  const turn = Math.floor(Math.random() * parts.length);
  return [...parts.slice(turn), ...parts.slice(0, turn)];
}

/** The shared limits of its queues, then the routing group of its lanes. */
function parseSource(key: string): Source {
  const [, taskType = '', joined = ''] = key.split('\n');
  const capabilities = joined === '' ? [] : joined.split('\t');
  const group = routingGroupKey({ taskType, capabilities });
  return { key, group, taskType, capabilities };
}
