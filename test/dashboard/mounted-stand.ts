import { defineTask } from '../../src/client/define-task.js';
import { InProcessApi } from '../../src/client/in-process-api.js';
import { overlapping } from '../../src/client/sluice-client.js';
import { Sluice } from '../../src/client/sluice.js';
import { openEngine } from '../../src/engine/open-engine.js';
import { silentLog } from '../../src/runtime/log.js';
import type { Mountable } from '../../src/server/dashboard/index.js';
import { NonRetriableError } from '../../src/worker/errors.js';
import { createTestDatabase } from '../support/postgres.js';
import { until } from '../support/until.js';

const broken = defineTask({
  type: 'broken',
  run: () => {
    throw new NonRetriableError('no such model');
  },
});

/** What a dashboard is mounted for, and what its actions are about. */
export interface MountedStand {
  readonly mountable: Mountable;
  /** Of a task that no worker takes. */
  taskId(): Promise<string>;
  deadLetterId(): Promise<string>;
  /** Of a worker that takes nothing. */
  workerId(): Promise<string>;
  /** The name of a shared limit. */
  limit(): Promise<string>;
  session(): Promise<{ readonly keyId: string; readonly sessionId: string }>;
  close(): Promise<void>;
}

export async function openMountedStand(): Promise<MountedStand> {
  const database = await createTestDatabase();
  const engine = await openEngine({ database: { kind: 'postgres', url: database.url } });
  const sluice = new Sluice(new InProcessApi(engine), () => engine.close(), overlapping);
  const worker = sluice.worker([broken], { queues: ['breaking'], log: silentLog });
  const { api } = sluice;
  await worker.start();
  await engine.putQueue('mounted', {});
  let made = 0;
  const newName = () => `${(made += 1)}-prepared`;
  return {
    mountable: { api, events: engine },
    taskId: async () => (await api.submit({ taskType: 'waits', queue: 'mounted' })).taskId,
    deadLetterId: async () => {
      const { taskId } = await api.submit({ taskType: 'broken', queue: 'breaking' });
      await until('it to be a dead letter', async () => {
        return (await api.getTask(taskId)).status === 'dead_letter';
      });
      return taskId;
    },
    workerId: async () => (await api.register({ taskTypes: ['none'] })).workerId,
    limit: async () => {
      const name = newName();
      await api.putLimit(name, { unit: 'requests', rate: 1, perSeconds: 1 });
      return name;
    },
    session: async () => {
      const { id: keyId, key } = await engine.createKey({ name: newName(), scopes: ['read'] });
      const holder = await engine.keys.authenticate(key, 'key', true);
      if (holder !== null) await engine.keys.signIn(holder);
      const [session] = await engine.keys.listSessions(keyId);
      return { keyId, sessionId: session?.id ?? 'none' };
    },
    close: async () => {
      await sluice.close();
      await database.drop();
    },
  };
}
