import { PgBoss } from 'pg-boss';
import { nowMs } from '../run/clock.mjs';
import { payload, range } from '../run/task.mjs';

const name = 'bench';
/** A batch is fetched and completed as one, and the next follows at once while batches are full. */
const work = { batchSize: 500, localConcurrency: 2, burstWhenBatchFull: true };

export async function open({ postgresUrl }) {
  const boss = new PgBoss({
    connectionString: postgresUrl,
    max: 25,
    schedule: false,
    useListenNotify: true,
  });
  boss.on('error', (error) => console.error(error));
  await boss.start();
  await boss.createQueue(name, { notify: true, partition: true });
  const db = boss.getDb();
  return {
    enqueue: async (count) => {
      const jobs = range(0, count).map((index) => ({ data: payload(index) }));
      await boss.insert(name, jobs);
    },
    submit: async (index) => {
      await boss.send(name, payload(index));
    },
    startWorker: async (onStart) => {
      await boss.work(name, work, async (jobs) => {
        for (const { data } of jobs) onStart(data.index, nowMs());
      });
      return () => boss.offWork(name, { wait: true });
    },
    isDrained: async () => {
      const { rows } = await db.executeSql(
        `select exists (select from pgboss.job where name = $1 and state < 'completed') as living`,
        [name],
      );
      return !rows[0].living;
    },
    close: () => boss.stop({ graceful: true }),
  };
}
