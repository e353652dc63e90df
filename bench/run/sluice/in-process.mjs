// Sluice as a library: the engine and one worker in this process, all settings as they are by default.
import { join } from 'node:path';
import { Sluice } from 'sluice';
import { openLivingTasks } from './living-tasks.mjs';
import { benchTask, enqueue, queue, submit } from './task.mjs';

export async function open({ variant, postgresUrl, redisUrl, folder }) {
  const sluice = await Sluice.open(
    {
      embedded: { dataDir: join(folder, 'data') },
      postgres: { databaseUrl: postgresUrl },
      redis: { databaseUrl: postgresUrl, redisUrl },
    }[variant],
  );
  const living = variant === 'embedded' ? asked(sluice) : await openLivingTasks(postgresUrl);
  return {
    enqueue: (count) => enqueue(sluice, count),
    submit: (index) => submit(sluice, index),
    startWorker: async (onStart) => {
      const worker = sluice.worker([benchTask(onStart)]);
      await worker.start();
      return () => worker.stop();
    },
    isDrained: living.isDrained,
    close: async () => {
      await sluice.close();
      await living.close();
    },
  };
}

/** The embedded database has one connection, and that is Sluice's. */
function asked(sluice) {
  return {
    isDrained: async () => {
      const { live } = await sluice.queue(queue).get();
      return live.backlog + live.running + Object.values(live.depth).reduce((a, b) => a + b) === 0;
    },
    close: async () => undefined,
  };
}
