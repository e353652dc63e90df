import { closedForMs, type Circuit } from '../domain/circuit.js';
import { circuitText } from '../domain/circuit-text.js';
import type { QueueSettings } from '../domain/queue-settings.js';

/** What keeps a queue from being taken from at all: an operator, or its circuit. */
export interface PausedQueue {
  readonly settings: QueueSettings;
  readonly circuit: Circuit;
}

/** A pause whose time is over is none. */
export function isPausedAt({ paused, pausedUntil }: QueueSettings, nowMs: number): boolean {
  return paused && (pausedUntil === null || pausedUntil.getTime() > nowMs);
}

/** 0: nothing is taken for no longer; null: until somebody resumes it. */
export function pauseLeftMs({ settings, circuit }: PausedQueue, nowMs: number): number | null {
  const left = operatorsLeftMs(settings, nowMs);
  return left === null ? null : Math.max(left, closedForMs(circuit, nowMs));
}

/** Whichever of the two lasts longer. */
export function pauseOf(
  { settings, circuit }: PausedQueue,
  nowMs: number,
): { readonly pausedUntil: Date | null; readonly pausedWhy: string | null } {
  const closedMs = closedForMs(circuit, nowMs);
  const isOperators = (operatorsLeftMs(settings, nowMs) ?? Number.POSITIVE_INFINITY) >= closedMs;
  if (isPausedAt(settings, nowMs) && isOperators) {
    return { pausedUntil: settings.pausedUntil, pausedWhy: 'paused by an operator' };
  }
  if (circuit.kind !== 'open') return { pausedUntil: null, pausedWhy: null };
  const pausedUntil = closedMs === 0 ? null : new Date(circuit.untilMs);
  return { pausedUntil, pausedWhy: circuitText(circuit, nowMs) };
}

function operatorsLeftMs(settings: QueueSettings, nowMs: number): number | null {
  if (!isPausedAt(settings, nowMs)) return 0;
  return settings.pausedUntil === null ? null : settings.pausedUntil.getTime() - nowMs;
}
