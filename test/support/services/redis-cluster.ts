import { until } from '../until.js';
import { getFreePort } from './free-port.js';
import { askRedis, startRedis, type RunningRedis } from './redis-server.js';

export interface RunningRedisCluster {
  /** As a setting takes it. */
  readonly url: string;
  readonly nodes: readonly RunningRedis[];
  stop(): Promise<void>;
}

const slots = 16_384;

/** Masters only: three unless told otherwise. */
export async function startRedisCluster(masters = 3): Promise<RunningRedisCluster> {
  const busPorts = await Promise.all(Array.from({ length: masters }, getFreePort));
  const nodes = await Promise.all(busPorts.map(startNode));
  await Promise.all(nodes.map(({ url }, index) => giveSlots(url, index, masters)));
  const [first] = nodes;
  for (const [index, { port }] of nodes.entries()) {
    if (first === undefined || index === 0) continue;
    const busPort = String(busPorts[index]);
    await askRedis(first.url, 'cluster', 'meet', '127.0.0.1', String(port), busPort);
  }
  await Promise.all(
    nodes.map(({ url }) => until('the cluster to be whole', () => isWhole(url, masters))),
  );
  return {
    url: `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    nodes,
    stop: async () => {
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

function startNode(busPort: number): Promise<RunningRedis> {
  const cluster = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '1000'];
  return startRedis({ args: [...cluster, '--cluster-port', String(busPort)] });
}

async function giveSlots(url: string, index: number, masters: number): Promise<void> {
  const first = Math.floor((slots * index) / masters);
  const last = Math.floor((slots * (index + 1)) / masters) - 1;
  await askRedis(url, 'cluster', 'addslotsrange', String(first), String(last));
}

async function isWhole(url: string, masters: number): Promise<boolean> {
  const info = String(await askRedis(url, 'cluster', 'info'));
  return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${masters}`);
}
