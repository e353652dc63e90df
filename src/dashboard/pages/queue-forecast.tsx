import type { ForecastWire } from '../../protocol/forecast-schema.js';
import { Panel } from '../components/bits.js';
import { deadlineWords, emptyWords } from '../forecast-words.js';
import { usePolled } from '../polled.js';

/** When the queue is empty and which deadlines it will miss. Nothing where this server cannot say. */
export function QueueForecast({ path }: { path: string }) {
  const { data } = usePolled<ForecastWire>(`${path}/forecast`, { everyMs: 5_000 });
  if (data === null) return null;
  const deadlines = deadlineWords(data);
  return (
    <Panel title="Forecast">
      <p>{emptyWords(data)}</p>
      {deadlines === null ? null : (
        <p class={(data.deadlines.missed ?? 0) > 0 ? 'bad-text' : ''}>{deadlines}</p>
      )}
    </Panel>
  );
}
