import { expect, it } from 'vitest';
import { lifetimeMs, memoryBytes, toWorkerOptions } from './options.js';

it('R-WO13: processes of one age retire one after the other', () => {
  const ages = [1, 2, 3, 4].map((child) => lifetimeMs({ maxLifetime: 1_000, processes: 4, child }));
  expect(ages).toEqual([1_000_000, 975_000, 950_000, 925_000]);
  expect(lifetimeMs({ maxLifetime: 60 })).toBe(60_000);
  expect(lifetimeMs({})).toBeNull();
});

it('R-WO3: processes share the memory that there is', () => {
  expect(memoryBytes({ memoryLimit: 512, processes: 4, child: 2 })).toBe(128 * 1024 * 1024);
  expect(memoryBytes({ memoryLimit: 512 })).toBe(512 * 1024 * 1024);
  const half = memoryBytes({ processes: 2, child: 1 }) ?? 0;
  expect(memoryBytes({ processes: 1, child: 1 })).toBe(half * 2);
  expect(memoryBytes({})).toBeNull();
});

it('R-OB13: the settings of a worker, in its own units', () => {
  const command = {
    ...{ url: 'http://127.0.0.1:1', module: 'tasks.js', drainTimeout: 30 },
    ...{ metricsHost: '127.0.0.1', logLevel: 'info' },
  };
  expect(toWorkerOptions(command)).toEqual({ drainTimeoutMs: 30_000 });
  expect(
    toWorkerOptions({
      ...command,
      ...{ concurrency: 8, claimBatch: 4, latencyThreshold: 2.5, logTransitions: 'all' },
    }),
  ).toEqual({
    ...{ drainTimeoutMs: 30_000, concurrency: 8, claimBatch: 4 },
    ...{ latencyThresholdMs: 2_500, logTransitions: 'all' },
  });
});
