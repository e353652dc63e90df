import { timestampOrNullFromWire, timestampOrNullToWire } from './common-wire.js';
import type { QueueForecast } from './forecast-api.js';
import type { ForecastWire } from './forecast-schema.js';

export function forecastToWire(forecast: QueueForecast): ForecastWire {
  const { queue, waiting, pace, standstill, deadlines } = forecast;
  return {
    queue,
    waiting,
    inflow_per_minute: forecast.inflowPerMinute,
    drain_per_minute: forecast.drainPerMinute,
    pace,
    standstill,
    empty_at: timestampOrNullToWire(forecast.emptyAt),
    empty_at_with_inflow: timestampOrNullToWire(forecast.emptyAtWithInflow),
    deadlines: {
      looked_at: deadlines.lookedAt,
      with_deadline: deadlines.withDeadline,
      missed: deadlines.missed,
      first_missed_at: timestampOrNullToWire(deadlines.firstMissedAt),
    },
  };
}

export function forecastFromWire(wire: ForecastWire): QueueForecast {
  const { queue, waiting, pace, standstill, deadlines } = wire;
  return {
    queue,
    waiting,
    inflowPerMinute: wire.inflow_per_minute,
    drainPerMinute: wire.drain_per_minute,
    pace,
    standstill,
    emptyAt: timestampOrNullFromWire(wire.empty_at),
    emptyAtWithInflow: timestampOrNullFromWire(wire.empty_at_with_inflow),
    deadlines: {
      lookedAt: deadlines.looked_at,
      withDeadline: deadlines.with_deadline,
      missed: deadlines.missed,
      firstMissedAt: timestampOrNullFromWire(deadlines.first_missed_at),
    },
  };
}
