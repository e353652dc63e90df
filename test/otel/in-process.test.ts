import { afterAll } from 'vitest';
import { InProcessApi } from '../../src/client/in-process-api.js';
import { Sluice } from '../../src/client/sluice.js';
import { overlapping } from '../../src/client/sluice-client.js';
import { openEngine, type Engine } from '../../src/engine/open-engine.js';
import { freshPglite } from '../support/pglite.js';
import { describeTracing } from './tracing.contract.js';

let engine: Engine | undefined;

describeTracing('in one process', async () => {
  const opened = await openEngine({ database: freshPglite() });
  engine = opened;
  return () => new Sluice(new InProcessApi(opened), async () => undefined, overlapping);
});

afterAll(() => engine?.close());
