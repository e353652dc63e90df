import type { Deadlines, Forecast } from '../domain/forecast.js';

/** When a queue will be empty and which dispatch deadlines it will miss, if nothing changes. */
export interface QueueForecast extends Omit<
  Forecast,
  'emptyInMs' | 'emptyInMsWithInflow' | 'deadlines'
> {
  readonly queue: string;
  /** If no further task comes; null: never, as things are. */
  readonly emptyAt: Date | null;
  /** If tasks go on coming as they did; null: never, as things are. */
  readonly emptyAtWithInflow: Date | null;
  readonly deadlines: Omit<Deadlines, 'firstMissedInMs'> & { readonly firstMissedAt: Date | null };
}

export interface ForecastApi {
  getForecast(queue: string): Promise<QueueForecast>;
}
