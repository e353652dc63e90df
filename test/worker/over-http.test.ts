import { NodeHttpApi } from '../../src/client/node-http-api.js';
import { openEngine } from '../../src/engine/open-engine.js';
import { silentLog } from '../../src/runtime/log.js';
import { buildApp } from '../../src/server/app.js';
import { createMetrics } from '../../src/server/metrics.js';
import type { Transport } from './transport.js';
import { describeWorkerContract } from './worker.contract.js';
import { freshPglite } from '../support/pglite.js';

describeWorkerContract('at the end of a wire', async (): Promise<Transport> => {
  const engine = await openEngine({ database: freshPglite() });
  const build = () =>
    buildApp({
      api: engine,
      events: engine,
      metrics: createMetrics(engine, engine),
      health: {
        degradation: () => null,
        readiness: async () => ({ ready: true }),
        progress: async () => ({ progressing: true }),
      },
      log: silentLog,
    });
  let app = build();
  const url = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  return {
    api: new NodeHttpApi(url.href),
    cut: async () => {
      await app.close();
    },
    restore: async () => {
      app = build();
      await app.listen({ host: '127.0.0.1', port: Number(url.port) });
    },
    close: async () => {
      await app.close();
      await engine.close();
    },
  };
});
