import { randomUUID } from 'node:crypto';
import type { defineTask } from '../../src/client/define-task.js';
import { SluiceClient } from '../../src/client/sluice-client.js';
import type { TaskHandle } from '../../src/client/task-handle.js';
import type { WorkerId } from '../../src/domain/ids.js';
import type { SluiceApi } from '../../src/protocol/api.js';
import { silentLog } from '../../src/runtime/log.js';
import type { TaskHandler } from '../../src/worker/handler.js';
import { Worker, type WorkerOptions } from '../../src/worker/worker.js';
import type { Transport } from './transport.js';

/** What a contract's tests work with; task types are never shared, so that they don't meet. */
export class Workbench {
  readonly transport: Transport;
  readonly sluice: SluiceClient;

  constructor(transport: Transport) {
    this.transport = transport;
    this.sluice = new SluiceClient(transport.api, async () => undefined);
  }

  get api(): SluiceApi {
    return this.transport.api;
  }

  /** A worker for the length of a test. */
  async working<Answer>(
    handlers: readonly TaskHandler[],
    test: (worker: Worker) => Promise<Answer>,
    options: WorkerOptions & { api?: SluiceApi } = {},
  ): Promise<Answer> {
    const { api = this.api, ...rest } = options;
    const worker = new Worker(api, handlers, { drainTimeoutMs: 100, log: silentLog, ...rest });
    await worker.start();
    try {
      return await test(worker);
    } finally {
      await worker.stop();
    }
  }

  async submitAll<Result>(
    definition: ReturnType<typeof defineTask<Result>>,
    count: number,
  ): Promise<TaskHandle<Result>[]> {
    const submitted = await this.sluice.submitMany(
      definition,
      Array.from({ length: count }, (_, i) => ({ input: { i } })),
    );
    return submitted.map((one) => {
      if (one.kind === 'refused') throw one.error;
      return one.handle;
    });
  }
}

export function unique(name: string): string {
  return `${name}-${randomUUID()}`;
}

export function rejectedOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

export function registered({ id }: Worker): WorkerId {
  if (id === null) throw new Error('The worker has not registered');
  return id;
}
