import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.js';
import { quickWasm } from './test/support/quick-wasm.js';

const all = ['src/**/*.test.ts', 'test/**/*.test.ts'];

/**
 * These keep no state outside of their tests, so their files run in one process after the other: to
 * start a process and to compile embedded Postgres in it anew is most of what a short file costs.
 */
const together = [
  'src/**/*.test.ts',
  'test/{client,http,integration,lab,limits,store,support,worker}/**/!(backlog|serving|chaos|simulation|case-study-smoke).test.ts',
];

const shared = {
  setupFiles: 'test/support/seed.ts',
  pool: 'forks' as const,
  execArgv: [quickWasm],
  // One more than a small machine has cores: they wait half of their time, for processes to start, for
  // leases to lapse, for Postgres.
  maxWorkers: 3,
  testTimeout: 300_000,
  hookTimeout: 300_000,
};

export default defineConfig({
  test: {
    globalSetup: 'test/support/global-setup.ts',
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: { ...shared, name: 'apart', include: all, exclude: together },
      },
      {
        test: { ...shared, name: 'together', include: together, isolate: false },
      },
    ],
  },
});
