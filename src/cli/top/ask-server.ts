import type { SluiceApi } from '../../protocol/api.js';
import { bounds } from '../../protocol/bounds.js';
import type { Shown } from './screen.js';

const metrics = ['completed', 'failed', 'wait_p50', 'wait_p95', 'run_p50', 'run_p95'];

type Asked = Pick<
  SluiceApi,
  'getStatistics' | 'getAttention' | 'listQueues' | 'getSeries' | 'listAlerts'
>;

/** One page of queues: to read ten thousand every second would cost the server more than it tells a person. */
export async function askServer(api: Asked): Promise<Shown> {
  const [statistics, attention, series, queues, alerts] = await Promise.all([
    api.getStatistics(),
    api.getAttention(),
    api.getSeries({ metrics }),
    api.listQueues({ limit: bounds.pageSize }),
    api.listAlerts({ state: 'firing' }),
  ]);
  return {
    ...{ statistics, attention, series, alerts: alerts.items },
    ...{ queues: queues.items, hasMoreQueues: queues.nextCursor !== null },
  };
}
