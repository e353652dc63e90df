import type { SeriesTimes } from '../domain/series.js';

export interface SeriesRequest extends SeriesTimes {
  /** Absent: submitted, started, completed and failed. */
  readonly metrics?: readonly string[];
  /** Absent: the sum over all queues. */
  readonly queue?: string;
}

/** Numbers over time, of all servers. They include what happened until a few seconds ago. */
export interface Series {
  readonly queue: string | null;
  readonly from: Date;
  readonly to: Date;
  readonly stepSeconds: number;
  /** When each piece of time begins. */
  readonly times: readonly Date[];
  /** By metric, one for each piece of time. Null: a quantile of nothing. */
  readonly values: Readonly<Record<string, readonly (number | null)[]>>;
}
