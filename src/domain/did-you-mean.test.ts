import { describe, expect, it } from 'vitest';
import { findMeant } from './did-you-mean.js';

const options = [
  'queue',
  'priority',
  'capabilities',
  'timeoutSeconds',
  'maxRetries',
  'workflowId',
  'workflowOnFailure',
];

describe('findMeant', () => {
  it.each([
    ['max_retries', 'maxRetries'],
    ['maxretries', 'maxRetries'],
    ['maxRetires', 'maxRetries'],
    ['retries', 'maxRetries'],
    ['prio', 'priority'],
    ['priorty', 'priority'],
    ['timeout', 'timeoutSeconds'],
    ['capability', 'capabilities'],
    ['qeue', 'queue'],
    ['colour', null],
    ['id', null],
    ['', null],
    ['workflow', 'workflowId'],
  ])('%s: %s', (given, meant) => {
    expect(findMeant(given, options)).toBe(meant);
  });

  it('knows the name also when it is written as in the other API', () => {
    expect(findMeant('maxConcurrency', ['max_concurrency', 'max_ready'])).toBe('max_concurrency');
  });

  it('does not choose between two that are as close', () => {
    expect(findMeant('url', ['databaseUrl', 'redisUrl'])).toBeNull();
  });

  it('finds nothing among no names', () => {
    expect(findMeant('a', [])).toBeNull();
  });
});
