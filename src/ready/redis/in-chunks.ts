import type { Window } from '../ready-queue.js';
import { windowArguments } from './line-arguments.js';

export function inChunks<T>(values: readonly T[], size: number): (readonly T[])[] {
  const chunks: (readonly T[])[] = [];
  for (let from = 0; from < values.length; from += size) {
    chunks.push(values.slice(from, from + size));
  }
  return chunks;
}

/** Parts of about so much weight; what is heavier stands alone. */
export function byWeight<T>(
  values: readonly T[],
  most: number,
  weightOf: (value: T) => number,
): (readonly T[])[] {
  const parts: T[][] = [];
  let room = 0;
  for (const value of values) {
    const weight = weightOf(value);
    if (parts.length === 0 || room < weight) {
      parts.push([]);
      room = most;
    }
    parts.at(-1)?.push(value);
    room -= weight;
  }
  return parts;
}

/**
 * Tells all of it, a part at a time, to a script that does less of a part when it costs too much: it answers
 * how many it did, from the first on. The parts after that are as small.
 */
export async function inAnsweredParts<T>(
  values: readonly T[],
  most: number,
  tell: (part: readonly T[]) => Promise<number>,
): Promise<void> {
  let size = most;
  for (let from = 0; from < values.length;) {
    const part = values.slice(from, from + size);
    const done = await tell(part);
    if (done < 1) throw new Error('a script answered that it did nothing');
    from += done;
    size = Math.min(most, done < part.length ? done + 1 : 2 * size);
  }
}

/** Stretches that have about so many rows together; a long one stands alone. */
export function byRows<T extends { readonly offers: readonly unknown[] }>(
  stretches: readonly T[],
  rows: number,
): (readonly T[])[] {
  return byWeight(stretches, rows, ({ offers }) => offers.length);
}

/** Parts of so many windows at most; one with capabilities counts twice. */
export function byWindows<T extends Window>(values: readonly T[], most: number): (readonly T[])[] {
  const parts: T[][] = [];
  let windows = new Set<string>();
  let room = 0;
  for (const value of values) {
    const window = windowArguments(value).join();
    const weight = value.lane.capabilities.length === 0 ? 1 : 2;
    if (!windows.has(window) && room < weight) {
      parts.push([]);
      windows = new Set();
      room = most;
    }
    if (!windows.has(window)) room -= weight;
    windows.add(window);
    parts.at(-1)?.push(value);
  }
  return parts;
}
