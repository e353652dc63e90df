import { SluiceError } from '../../src/domain/errors.js';
import { openEngine } from '../../src/engine/open-engine.js';
import type { Transport } from './transport.js';
import { describeWorkerContract } from './worker.contract.js';
import { freshPglite } from '../support/pglite.js';

describeWorkerContract('in the process of its engine', async (): Promise<Transport> => {
  const engine = await openEngine({ database: freshPglite() });
  let isCut = false;
  const away = () => Promise.reject(new SluiceError('unavailable', 'Postgres is away'));
  return {
    api: new Proxy(engine, {
      get: (target, key) => {
        const member: unknown = Reflect.get(target, key);
        if (typeof member !== 'function') return member;
        return isCut ? away : (member.bind(target) as unknown);
      },
    }),
    cut: async () => {
      isCut = true;
    },
    restore: async () => {
      isCut = false;
    },
    close: () => engine.close(),
  };
});
