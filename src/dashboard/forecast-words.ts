import type { ForecastWire } from '../protocol/forecast-schema.js';
import { amount, clock, count, plural } from './format.js';

const paces: Readonly<Record<NonNullable<ForecastWire['pace']>, string>> = {
  rate_limit: 'what its rate limit allows',
  max_concurrency: 'what max_concurrency allows',
  workers: 'what the slots of its workers allow',
  recent_rate: 'the rate of the last minute',
};

const standstills: Readonly<Record<NonNullable<ForecastWire['standstill']>, string>> = {
  paused: 'Never empty as things are: the queue is paused until somebody resumes it.',
  no_worker: 'Never empty as things are: no active worker can do any of its tasks.',
  nothing_starts: 'Nobody can say when it is empty: nothing started in the last minute.',
  unknown: 'Nobody can say yet when it is empty: nothing of it has run lately.',
};

/** When the line is empty, as people say it. */
export function emptyWords(forecast: ForecastWire): string {
  const { waiting, standstill, empty_at: emptyAt, drain_per_minute: drain, pace } = forecast;
  if (waiting === 0) return 'Nothing is in line.';
  if (standstill !== null) return standstills[standstill];
  if (emptyAt === null) return standstills.unknown;
  const by = drain === null || pace === null ? '' : `: ${amount(drain)} a minute, ${paces[pace]}`;
  return `Empty at ${clock(emptyAt)} if nothing more comes${by}. ${inflowWords(forecast)}`.trim();
}

function inflowWords(forecast: ForecastWire): string {
  const { inflow_per_minute: inflow, empty_at_with_inflow: emptyAt } = forecast;
  if (inflow === 0) return '';
  const coming = `If ${amount(inflow)} a minute go on coming, as in the last 5 minutes`;
  return emptyAt === null
    ? `${coming}, it never gets empty.`
    : `${coming}: empty at ${clock(emptyAt)}.`;
}

/** Null: none of the tasks that were looked at has a deadline. */
export function deadlineWords({ deadlines }: ForecastWire): string | null {
  const { looked_at: lookedAt, with_deadline: some, missed, first_missed_at: first } = deadlines;
  if (some === 0) return null;
  const next = `the next ${plural(lookedAt, 'task')} in line`;
  const those = `the ${plural(some, 'dispatch deadline')} of ${next}`;
  if (missed === null) return `Nobody can say which of ${those} will be missed.`;
  if (missed === 0) return `No dispatch deadline of ${next} will be missed.`;
  const firstAt = first === null ? '' : `, the first at ${clock(first)}`;
  return `${count(missed)} of ${those} will be missed${firstAt}.`;
}
