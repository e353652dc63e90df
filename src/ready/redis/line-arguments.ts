import { laneKey } from '../../domain/lane.js';
import { rankOf } from '../../domain/priority.js';
import type { Cost } from '../../domain/queue-settings.js';
import type { Offer, Place, Stretch, Window } from '../ready-queue.js';
import type { Argument } from './script-runner.js';

type Feeding = Pick<Stretch, 'window' | 'round' | 'next'>;

/**
 * Windows first, those that are fed before the others; then where the feeds go on, the ids, and a text for
 * each offer, which names its window by number. Every argument costs both sides more than what is in it.
 */
export function offerArguments(offers: readonly Offer[], fed: readonly Feeding[] = []): Argument[] {
  const numbers = new Map<string, number>();
  const numberOf = (window: Window) => {
    const field = `${rankOf(window.priority)}${laneKey(window.lane)}`;
    const known = numbers.get(field);
    if (known !== undefined) return known;
    numbers.set(field, numbers.size + 1);
    return numbers.size;
  };
  const feeds: Argument[] = [];
  for (const { window, round, next } of fed) {
    const isFirst = numberOf(window) === feeds.length / 3 + 1;
    if (isFirst) feeds.push(round, next?.eligibleAtMs ?? '', next?.seq ?? '');
  }
  const rows = offers.map((offer) => {
    const { ageMs, eligibleAtMs, seq, cost } = offer;
    const position = `${String(seq).padStart(16, '0')} ${numberOf(offer)}`;
    return `${position} ${Math.round(ageMs)} ${eligibleAtMs} ${costText(cost)}`;
  });
  const ids = offers.map(({ taskId }) => taskId);
  return [numbers.size, feeds.length / 3, ...numbers.keys(), ...feeds, ...ids, ...rows];
}

export function windowArguments({ lane, priority }: Window): [string, number] {
  return [laneKey(lane), rankOf(priority)];
}

export function placeArguments(places: readonly Place[]): Argument[] {
  return places.flatMap((place) => {
    const { eligibleAtMs, seq } = place;
    const at = eligibleAtMs === Number.NEGATIVE_INFINITY ? '-inf' : eligibleAtMs;
    return [...windowArguments(place), at, seq];
  });
}

function costText(cost: Cost): string {
  const text = JSON.stringify(cost);
  return text === '{}' ? '' : text;
}
