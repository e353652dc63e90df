import { afterAll, beforeAll } from 'vitest';
import { describeClaiming } from './claiming.contract.js';
import { describeHandlers } from './handlers.contract.js';
import { describeLifecycle } from './lifecycle.contract.js';
import { describeMisbehaviour } from './misbehaviour.contract.js';
import { describeRetries } from './retries.contract.js';
import type { Transport } from './transport.js';
import { Workbench } from './workbench.js';

/** What holds for a worker wherever its server is: in this process or at the end of a wire. */
export function describeWorkerContract(name: string, open: () => Promise<Transport>): void {
  let bench: Workbench;

  beforeAll(async () => {
    bench = new Workbench(await open());
  });
  afterAll(() => bench.transport.close());

  describeHandlers(name, () => bench);
  describeRetries(name, () => bench);
  describeMisbehaviour(name, () => bench);
  describeClaiming(name, () => bench);
  describeLifecycle(name, () => bench);
}
