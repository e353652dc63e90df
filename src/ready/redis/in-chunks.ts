import type { Window } from '../ready-queue.js';
import { windowArguments } from './line-arguments.js';

export function inChunks<T>(values: readonly T[], size: number): (readonly T[])[] {
  const chunks: (readonly T[])[] = [];
  for (let from = 0; from < values.length; from += size) {
    chunks.push(values.slice(from, from + size));
  }
  return chunks;
}

/** Stretches that have about so many rows together; a long one stands alone. */
export function byRows<T extends { readonly offers: readonly unknown[] }>(
  stretches: readonly T[],
  rows: number,
): (readonly T[])[] {
  const parts: T[][] = [];
  let room = 0;
  for (const stretch of stretches) {
    if (parts.length === 0 || room < stretch.offers.length) {
      parts.push([]);
      room = rows;
    }
    parts.at(-1)?.push(stretch);
    room -= stretch.offers.length;
  }
  return parts;
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
