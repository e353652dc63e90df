import { expect, it } from 'vitest';
import { lifetimeMs, memoryBytes } from './options.js';

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
