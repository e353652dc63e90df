const text = 'x'.repeat(100);

/** What every task carries, whoever queues it. */
export function payload(index) {
  return { index, text };
}

/** What every handler answers, where answers are kept. */
export const result = { ok: true };

export function range(from, to) {
  return Array.from({ length: to - from }, (_, offset) => from + offset);
}
