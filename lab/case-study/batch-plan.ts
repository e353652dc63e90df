import type { Work } from './work.js';

/** How the batch system cuts what it fetched: parts run side by side, their sub-batches one by one. */
export interface BatchShape {
  readonly parts: number;
  readonly size: number;
}

export const publishedShape: BatchShape = { parts: 20, size: 10 };

/** Parts of sub-batches, in the order in which the work came. */
export function planBatches<Item extends Work>(
  work: readonly Item[],
  { parts, size }: BatchShape,
): readonly (readonly (readonly Item[])[])[] {
  return splitInto(work, parts).map((part) => cutBy(part, size));
}

/** As even as it goes: sizes differ by one at most. */
function splitInto<Item>(items: readonly Item[], parts: number): readonly (readonly Item[])[] {
  const bound = (part: number) => Math.round((part * items.length) / parts);
  return Array.from({ length: parts }, (_, part) => items.slice(bound(part), bound(part + 1)));
}

function cutBy<Item>(items: readonly Item[], size: number): readonly (readonly Item[])[] {
  const length = Math.ceil(items.length / size);
  return Array.from({ length }, (_, n) => items.slice(n * size, (n + 1) * size));
}
