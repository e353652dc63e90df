import { until } from '../until.js';
import { getFreePort } from './free-port.js';
import { askRedis, runRedis, startRedis, type RunningRedis } from './redis-server.js';

export interface RunningSentinel {
  /** As a setting takes it. */
  readonly url: string;
  readonly master: RunningRedis;
  readonly replica: RunningRedis;
  stop(): Promise<void>;
}

const name = 'main';
const sentinels = 3;

/** A master, its replica, and three sentinels that are quick to give a master up. */
export async function startSentinel(): Promise<RunningSentinel> {
  const master = await startRedis({ args: ['--repl-diskless-sync-delay', '0'] });
  const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(master.port)] });
  await until('the replica to follow', async () =>
    String(await askRedis(replica.url, 'info', 'replication')).includes('master_link_status:up'),
  );
  const guards = await Promise.all(Array.from({ length: sentinels }, () => watchOver(master.port)));
  await Promise.all(guards.map(({ url }) => until('the sentinels to agree', () => isSettled(url))));
  const hosts = guards.map(({ port }) => `127.0.0.1:${port}`).join(',');
  return {
    url: `redis+sentinel://${hosts}/${name}`,
    master,
    replica,
    stop: async () => {
      await Promise.all([...guards, replica, master].map((server) => server.stop()));
    },
  };
}

async function watchOver(masterPort: number): Promise<RunningRedis> {
  const port = await getFreePort();
  const settings = [
    `port ${port}`,
    'bind 127.0.0.1',
    `sentinel monitor ${name} 127.0.0.1 ${masterPort} 2`,
    `sentinel down-after-milliseconds ${name} 500`,
    `sentinel failover-timeout ${name} 3000`,
  ];
  const files = { 'sentinel.conf': `${settings.join('\n')}\n` };
  const args = ['sentinel.conf', '--sentinel'];
  const sentinel = await runRedis({ name: 'redis-sentinel', port, args, files });
  await askOften(sentinel.url);
  return sentinel;
}

/** In production they talk every second or two, in tests that is long. Redis 7 and later. */
async function askOften(url: string): Promise<void> {
  const periods = ['info-period', 'publish-period', 'ask-period', 'ping-period'];
  const args = periods.flatMap((period) => [period, '100']);
  await askRedis(url, 'sentinel', 'debug', ...args).catch(() => undefined);
}

async function isSettled(url: string): Promise<boolean> {
  const answer = (await askRedis(url, 'sentinel', 'master', name)) as readonly string[];
  const valueOf = (field: string) => answer[answer.indexOf(field) + 1];
  return valueOf('num-other-sentinels') === String(sentinels - 1) && valueOf('num-slaves') === '1';
}
