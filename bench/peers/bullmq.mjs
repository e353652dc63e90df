import { URL } from 'node:url';
import { Queue, Worker } from 'bullmq';
import { nowMs } from '../run/clock.mjs';
import { payload, range, result } from '../run/task.mjs';

const name = 'bench';
const bulk = 1_000;
/** "Going to production", "Auto-job removal": nothing is kept of what is over. */
const defaultJobOptions = { removeOnComplete: true, removeOnFail: true };
/** "Parallelism and Concurrency": 100 to 300 for jobs that wait for others. */
const concurrency = 100;

export async function open({ redisUrl }) {
  const { hostname, port } = new URL(redisUrl);
  const connection = { host: hostname, port: Number(port) };
  const queue = new Queue(name, { connection, defaultJobOptions });
  await queue.waitUntilReady();
  return {
    enqueue: async (count) => {
      for (let from = 0; from < count; from += bulk) {
        const indexes = range(from, Math.min(count, from + bulk));
        await queue.addBulk(indexes.map((index) => ({ name: 'noop', data: payload(index) })));
      }
    },
    submit: async (index) => {
      await queue.add('noop', payload(index));
    },
    startWorker: async (onStart) => {
      const run = async ({ data }) => {
        onStart(data.index, nowMs());
        return result;
      };
      const worker = new Worker(name, run, { connection, concurrency });
      await worker.waitUntilReady();
      return () => worker.close();
    },
    isDrained: async () => (await queue.getJobCountByTypes('wait', 'active')) === 0,
    close: () => queue.close(),
  };
}
