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
  'test/{client,http,integration,lab,limits,store,support,worker}/**/!(backlog|serving|chaos|simulation).test.ts',
];

const shared = {
  setupFiles: 'test/support/seed.ts',
  pool: 'forks',
  testTimeout: 300_000,
  hookTimeout: 300_000,
} as const;

export default defineConfig({
  test: {
    globalSetup: 'test/support/global-setup.ts',
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        // These wait half of their time: for processes to start, for leases to lapse.
        test: {
          ...shared,
          execArgv: [quickWasm],
          name: 'apart',
          include: all,
          exclude: together,
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...shared,
          execArgv: [quickWasm],
          name: 'together',
          include: together,
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
