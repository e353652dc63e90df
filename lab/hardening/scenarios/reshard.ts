import { execFileSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { MovingSlot } from '../../../test/support/services/move-slot.js';
import { startRedisCluster } from '../../../test/support/services/redis-cluster.js';
import { Cluster } from '../../limits/cluster.js';
import { count, judged, seconds, type Scenario } from '../../shared/scenario.js';

const queues = 300;

export const reshard: Scenario = {
  name: 'reshard',
  about:
    'The slot of the ready queue is moved between two nodes of a Redis Cluster, key by key, while 2 servers work on 300 queues',
  run: async (lab) => {
    const nodes = await startRedisCluster(2);
    try {
      await using cluster = await Cluster.start(lab.postgresUrl, {
        servers: 2,
        ready: 'memory',
        serveArgs: ['--redis-url', nodes.url],
      });
      const [installation] = await cluster.database.query<{ id: string }>(
        'select id from sluice.installation',
      );
      const slot = await MovingSlot.of(nodes, `sluice:{${installation?.id ?? ''}}:`);
      const moves = lab.size(20, 3);
      const length = lab.size(40_000, 6_000);
      await cluster.submit(drafts(length));
      await cluster.startWorkers({ workers: 2, concurrency: 20 });
      let [passed, keys] = [0, 0];
      using steps = lab.progress.steps('moves', moves);
      for (let move = 0; move < moves; move += 1) {
        await delay(1_000);
        try {
          keys += await slot.move();
          passed += 1;
        } catch (error) {
          lab.progress.say(String(error));
          break;
        }
        steps.step();
      }
      const beganMs = performance.now();
      await lab.progress.until('ended', length, async () => length - (await cluster.countLiving()));
      const drainedMs = performance.now() - beganMs;
      slot.close();
      return [
        judged(
          {
            what: 'moves that passed; keys moved',
            measured: `${passed} of ${moves}; ${count(keys)}`,
            numbers: { passed, keys },
          },
          `${moves} of ${moves}`,
          passed === moves && keys > 0,
        ),
        judged(
          {
            what: 'what redis-cli --cluster check says of open slots',
            measured: openSlots(nodes.nodes[0]?.port ?? 0),
            numbers: {},
          },
          'none',
          openSlots(nodes.nodes[0]?.port ?? 0) === 'none',
        ),
        judged(
          {
            what: 'tasks ended after that',
            measured: `all ${count(length)}, ${seconds(drainedMs)} after the last move`,
            numbers: { length, drainedMs },
          },
          'all',
          true,
        ),
      ];
    } finally {
      await nodes.stop();
    }
  },
};

function openSlots(port: number): string {
  const said = execFileSync('redis-cli', ['--cluster', 'check', `127.0.0.1:${port}`], {
    encoding: 'utf8',
  });
  return said.includes('in migrating state') || said.includes('in importing state')
    ? 'open slots'
    : 'none';
}

function drafts(length: number) {
  return Array.from({ length }, (_, index) => {
    return { taskType: 'sleep', queue: `q${index % queues}`, parameters: { ms: 20 } };
  });
}
