import { describe, expect, it } from 'vitest';
import type { AttemptError } from '../domain/attempt-error.js';
import type { JsonObject } from '../domain/json.js';
import { bounds } from '../protocol/bounds.js';
import { withStack } from './stack.js';

const failed: AttemptError = { code: 'ERROR', message: 'it broke', retriable: true };

function withFrames(frames: number, message = 'it broke'): Error {
  const error = new Error(message);
  const lines = Array.from(
    { length: frames },
    (_, at) => `    at f${at} (/app/${'x'.repeat(90)}.js:1:${at})`,
  );
  error.stack = [`Error: ${message}`, ...lines].join('\n');
  return error;
}

const stackOf = (error: AttemptError) => (error.details as JsonObject | undefined)?.stack;

describe('withStack', () => {
  it('R-OB6: keeps the frames nearest to the throw, and no frame of Node itself', () => {
    const error = withFrames(2);
    error.stack = `${String(error.stack)}\n    at node:internal/process/task_queues:95:5`;
    expect(stackOf(withStack(failed, error))).toMatch(
      /^Error: it broke\n {4}at f0 .*\n {4}at f1 [^\n]*$/,
    );
  });

  it('R-OB6: takes 8 KiB at most, whatever was thrown', () => {
    const endless = withFrames(100_000, '火'.repeat(10_000));
    const chain = new Error('a', { cause: withFrames(60, 'b') });
    (chain.cause as Error).cause = chain;
    for (const thrown of [endless, chain]) {
      const stack = stackOf(withStack(failed, thrown)) as string;
      expect(Buffer.byteLength(stack)).toBeLessThanOrEqual(bounds.stackBytes);
      expect(stack.split('\n').every((line) => /^(Error|Caused by| {4}at .*\)?$)/.test(line))).toBe(
        true,
      );
    }
  });

  it('keeps the details of the error beside it, and its own stack before ours', () => {
    const details = { status: 500 };
    expect(withStack({ ...failed, details }, withFrames(1)).details).toMatchObject(details);
    const own = { stack: 'of Python' };
    expect(withStack({ ...failed, details: own }, withFrames(1)).details).toEqual(own);
    expect(withStack({ ...failed, details: [1] }, withFrames(1)).details).toEqual([1]);
  });

  it('gives none where it would not fit, to push-backs, and of what has none', () => {
    const large = { ...failed, details: { text: 'x'.repeat(bounds.taskBytes - 1_000) } };
    expect(withStack(large, withFrames(60))).toBe(large);
    const slow = { ...failed, code: 'RATE_LIMITED' };
    expect(withStack(slow, withFrames(1))).toBe(slow);
    const hostile = Object.defineProperty({}, 'stack', {
      get: () => {
        throw new Error('no');
      },
    });
    for (const thrown of ['text', null, { stack: 7 }, hostile]) {
      expect(withStack(failed, thrown)).toBe(failed);
    }
  });
});
