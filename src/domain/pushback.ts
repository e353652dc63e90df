import type { Circuit } from './circuit.js';

/** What an answer that wants no calls for now did to its queue. */
export const pushbackEffects = ['goes_on', 'stopped', 'was_stopped'] as const;
export type PushbackEffect = (typeof pushbackEffects)[number];

export interface Became {
  readonly became: PushbackEffect;
  /** Until when the queue stands still; null: it goes on. */
  readonly untilMs: number | null;
}

/** `stopped`: also when the queue stands still for longer than before. */
export function becameOf(before: Circuit, after: Circuit): Became {
  if (after.kind !== 'open') return { became: 'goes_on', untilMs: null };
  const isNews = before.kind !== 'open' || after.untilMs > before.untilMs;
  return { became: isNews ? 'stopped' : 'was_stopped', untilMs: after.untilMs };
}
