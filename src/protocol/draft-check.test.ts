import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SluiceError } from '../domain/errors.js';
import { bounds } from './bounds.js';
import { compileCheck } from './compile-check.js';
import { defined } from './defined.js';
import { isPlainlyRight, readDraft } from './draft-check.js';
import { refuseDraftFaults } from './task-draft-faults.js';
import type { TaskDraft } from './tasks-api.js';
import { taskDraftSchema } from './tasks-schema.js';
import { taskDraftToWire } from './tasks-wire.js';

const names = [
  'taskType',
  'queue',
  'priority',
  'parameters',
  'requiredCapabilities',
  'timeoutSeconds',
  'maxRetries',
  'idempotencyKey',
  'workflowId',
  'workflowOnFailure',
  'runAt',
  'delaySeconds',
  'dispatchDeadlineSeconds',
  'cost',
  'userId',
  'tags',
  'traceId',
  'traceparent',
  'prio',
  'toString',
];

const values = fc.oneof(
  fc.constantFrom<unknown>('a', '', 'high', 'continue', 'a b', 'x'.repeat(600), null, undefined),
  fc.constantFrom<unknown>('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'),
  fc.constantFrom<unknown>(0, 1, -1, 0.5, NaN, Infinity, 86_400, 1e12, true),
  fc.constantFrom<unknown>(new Date(1e12), new Date(-1), new Date(NaN), '2026-01-31T12:00:00Z'),
  fc.constantFrom<unknown>(
    [],
    ['gpu'],
    ['a b'],
    [1],
    {},
    { tokens: 5 },
    { requests: 1 },
    { a: NaN },
  ),
);

const drafts = fc
  .tuple(
    fc.constantFrom('echo', 'two words', undefined),
    fc.dictionary(fc.constantFrom(...names), values),
  )
  .map(([taskType, rest]) => defined({ ...rest, taskType }) as unknown as TaskDraft);

const checkWire = compileCheck(taskDraftSchema);

/** As HTTP judges it. */
function isRight(draft: TaskDraft): boolean {
  try {
    const wire = taskDraftToWire(draft);
    refuseDraftFaults(wire, bounds.taskBytes);
    return checkWire(wire) === null;
  } catch (error) {
    if (error instanceof SluiceError) return false;
    throw error;
  }
}

function isAccepted(draft: TaskDraft): boolean {
  try {
    readDraft(draft);
    return true;
  } catch (error) {
    if (error instanceof SluiceError) return false;
    throw error;
  }
}

describe('a draft in-process', () => {
  it('is accepted exactly when HTTP accepts it, and what is plainly right is right', () => {
    const counts = { right: 0, plainly: 0 };
    fc.assert(
      fc.property(drafts, (draft) => {
        const right = isRight(draft);
        const plainly = isPlainlyRight(draft);
        expect(isAccepted(draft)).toBe(right);
        if (plainly) expect(right).toBe(true);
        counts.right += right ? 1 : 0;
        counts.plainly += plainly ? 1 : 0;
      }),
      { numRuns: 2_000 },
    );
    expect(counts.plainly).toBeGreaterThan(20);
    expect(counts.right).toBeGreaterThanOrEqual(counts.plainly);
  });

  it('with text as its time is read as the wire reads it', () => {
    const draft = { taskType: 'echo', runAt: '2001-09-09T01:46:40Z' as unknown as Date };
    expect(readDraft(draft)).toEqual({ taskType: 'echo', runAt: new Date(1e12) });
  });
});
