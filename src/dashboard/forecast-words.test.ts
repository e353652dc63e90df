import { expect, it } from 'vitest';
import type { ForecastWire } from '../protocol/forecast-schema.js';
import { deadlineWords, emptyWords } from './forecast-words.js';
import { clock } from './format.js';

const at = new Date(Date.now() + 3_600_000).toISOString();
const later = new Date(Date.now() + 7_200_000).toISOString();

function forecast(change: Partial<ForecastWire> = {}): ForecastWire {
  return {
    queue: 'gpt',
    waiting: 5_000,
    inflow_per_minute: 0,
    drain_per_minute: 120,
    pace: 'rate_limit',
    standstill: null,
    empty_at: at,
    empty_at_with_inflow: at,
    deadlines: { looked_at: 1_000, with_deadline: 0, missed: 0, first_missed_at: null },
    ...change,
  };
}

it.each<[string, Partial<ForecastWire>, string]>([
  ['nothing waits', { waiting: 0 }, 'Nothing is in line.'],
  [
    'nothing comes',
    {},
    `Empty at ${clock(at)} if nothing more comes: 120 a minute, what its rate limit allows.`,
  ],
  [
    'some come',
    { inflow_per_minute: 40, empty_at_with_inflow: later },
    `Empty at ${clock(at)} if nothing more comes: 120 a minute, what its rate limit allows. ` +
      `If 40 a minute go on coming, as in the last 5 minutes: empty at ${clock(later)}.`,
  ],
  [
    'as many come as go',
    { inflow_per_minute: 120, empty_at_with_inflow: null },
    `Empty at ${clock(at)} if nothing more comes: 120 a minute, what its rate limit allows. ` +
      'If 120 a minute go on coming, as in the last 5 minutes, it never gets empty.',
  ],
  [
    'nobody can do it',
    { standstill: 'no_worker', empty_at: null },
    'Never empty as things are: no active worker can do any of its tasks.',
  ],
])('R-AD6: says when a queue is empty: %s', (_, change, words) => {
  expect(emptyWords(forecast(change))).toBe(words);
});

it.each<[Partial<ForecastWire['deadlines']>, string | null]>([
  [{}, null],
  [{ with_deadline: 700 }, 'No dispatch deadline of the next 1,000 tasks in line will be missed.'],
  [
    { with_deadline: 700, missed: 12, first_missed_at: at },
    `12 of the 700 dispatch deadlines of the next 1,000 tasks in line will be missed, the first at ${clock(at)}.`,
  ],
  [
    { with_deadline: 700, missed: null },
    'Nobody can say which of the 700 dispatch deadlines of the next 1,000 tasks in line will be missed.',
  ],
])('R-AD6: says which deadlines will be missed: %j', (change, words) => {
  const deadlines = { ...forecast().deadlines, ...change };
  expect(deadlineWords(forecast({ deadlines }))).toBe(words);
});
