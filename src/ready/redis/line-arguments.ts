import { laneKey } from '../../domain/lane.js';
import { rankOf } from '../../domain/priority.js';
import type { Cost } from '../../domain/queue-settings.js';
import type { Offer, Place, Stretch, Window } from '../ready-queue.js';
import type { Argument } from './script-runner.js';

type Feeding = Pick<Stretch, 'window' | 'round' | 'next'>;

/** Windows first; each offer then names its own by number. */
export function offerArguments(offers: readonly Offer[], fed: readonly Feeding[] = []): Argument[] {
  const numbers = new Map<string, number>();
  const windows: Argument[] = [];
  const rows: Argument[] = [];
  const numberOf = (window: Window, feeding: readonly Argument[]) => {
    const [key, rank] = windowArguments(window);
    const known = numbers.get(`${rank}${key}`);
    if (known !== undefined) return known;
    windows.push(key, rank, ...feeding);
    numbers.set(`${rank}${key}`, numbers.size + 1);
    return numbers.size;
  };
  for (const { window, round, next } of fed) {
    numberOf(window, [round, next?.eligibleAtMs ?? '', next?.seq ?? '']);
  }
  for (const offer of offers) {
    const { taskId, ageMs, eligibleAtMs, seq, cost } = offer;
    const paddedSeq = String(seq).padStart(16, '0');
    const number = numberOf(offer, ['', '', '']);
    rows.push(taskId, number, Math.round(ageMs), eligibleAtMs, paddedSeq, costText(cost));
  }
  return [numbers.size, ...windows, ...rows];
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
