import { describe, expect, it } from 'vitest';
import { defaultTaskPolicy } from '../domain/task-policy.js';
import { checkServeConfig } from './config.js';

const check = (flags: Readonly<Record<string, unknown>>) =>
  checkServeConfig({ flags, env: {}, file: null });

describe('R-OB13: settings of tasks', () => {
  it.each([
    [{ maxRetries: 'high=7,low=0' }, { maxRetries: { high: 7, medium: 3, low: 0 } }],
    [{ maxRetries: '4' }, { maxRetries: { high: 4, medium: 4, low: 4 } }],
    [{ timeoutSeconds: 'low=30' }, { timeoutSeconds: { high: 300, medium: 600, low: 30 } }],
    [{ maxBackoffSeconds: 'high=1' }, { maxBackoffSeconds: { high: 1, medium: 30, low: 60 } }],
    [{ maxRetriesByError: 'WORKER_LOST=1' }, { maxRetriesByError: { WORKER_LOST: 1 } }],
    [{ dispatchDeadlineSeconds: '60' }, { dispatchDeadlineSeconds: 60 }],
  ])('%j', (flags, policy) => {
    expect(check(flags)).toMatchObject({
      kind: 'valid',
      config: { tasks: { ...defaultTaskPolicy, ...policy } },
    });
  });

  it.each([
    [{ maxRetries: 'urgent=7' }, '--max-retries must be like high=5'],
    [{ maxRetries: 'high=101' }, '--max-retries must be like high=5'],
    [{ maxRetriesByError: 'TIMEOUT' }, '--max-retries-by-error must be like'],
    [{ maxRetriesByError: 'INVALID_INPUT=1' }, 'INVALID_INPUT (1) must be 0'],
    [
      { assignmentTimeoutMs: '5' },
      'assignmentTimeoutMs (5000) must be more than heartbeatIntervalMs (10000)',
    ],
  ])('%j is refused', (flags, sentence) => {
    const checked = check(flags);
    expect(checked.kind === 'invalid' ? checked.problems.join() : '').toContain(sentence);
  });
});
