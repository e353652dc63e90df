import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import { nowMs } from '../run/clock.mjs';
import { payload, range } from '../run/task.mjs';

const silent = new Logger(() => () => undefined);
/** "Performance", "perfTest results": the configurations without and with batching. */
const sizes = { concurrentJobs: 24, maxPoolSize: 25 };
const variants = {
  plain: sizes,
  'local-queue': {
    ...sizes,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  },
};

export async function open({ variant, postgresUrl }) {
  const preset = {
    worker: { connectionString: postgresUrl, logger: silent, ...variants[variant] },
  };
  const utils = await makeWorkerUtils({ preset });
  await utils.migrate();
  return {
    enqueue: async (count) => {
      const specs = range(0, count).map((index) => ({
        identifier: 'noop',
        payload: payload(index),
      }));
      await utils.addJobs(specs);
    },
    submit: async (index) => {
      await utils.addJob('noop', payload(index));
    },
    startWorker: async (onStart) => {
      const noop = ({ index }) => onStart(index, nowMs());
      const runner = await run({ preset, taskList: { noop }, noHandleSignals: true });
      return () => runner.stop();
    },
    isDrained: () =>
      utils.withPgClient(async (client) => {
        const { rows } = await client.query(
          'select exists (select from graphile_worker._private_jobs) as living',
        );
        return !rows[0].living;
      }),
    close: () => utils.release(),
  };
}
