import { bounds } from './bounds.js';

/** Why a JSON value can't be kept as it is. */
export type JsonFault = 'too_deep' | 'not_finite' | 'too_large';

/** Whether `value` can be kept in at most `maxBytes` of JSON; null when it can. */
export function findJsonFault(value: unknown, maxBytes: number): JsonFault | null {
  const walk: Walk = { mostBytes: 0, fault: null };
  measure(value, 0, walk);
  if (walk.fault !== null) return walk.fault;
  // Most values are far from the limit: only the rest are written out to be counted exactly.
  if (walk.mostBytes <= maxBytes) return null;
  return Buffer.byteLength(JSON.stringify(value)) > maxBytes ? 'too_large' : null;
}

interface Walk {
  /** An upper bound: a character takes at most six bytes (\u0000), a number at most 25. */
  mostBytes: number;
  fault: JsonFault | null;
}

function measure(value: unknown, depth: number, walk: Walk): void {
  if (typeof value === 'string') {
    walk.mostBytes += value.length * 6 + 3;
  } else if (typeof value === 'number') {
    walk.mostBytes += 26;
    // JSON.parse reads 1e999 as Infinity, which JSON.stringify would write as null.
    if (!Number.isFinite(value)) walk.fault ??= 'not_finite';
  } else if (typeof value !== 'object' || value === null) {
    walk.mostBytes += 6;
  } else {
    measureMembers(value, depth + 1, walk);
  }
}

function measureMembers(value: object, depth: number, walk: Walk): void {
  walk.mostBytes += 3;
  if (depth > bounds.jsonDepth) {
    walk.fault ??= 'too_deep';
  } else if (Array.isArray(value)) {
    for (const item of value) measure(item, depth, walk);
  } else {
    for (const key of Object.keys(value)) {
      walk.mostBytes += key.length * 6 + 4;
      measure((value as Record<string, unknown>)[key], depth, walk);
    }
  }
}
