import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { noAgeing } from '../domain/priority.js';
import type { TaskId, WorkerId } from '../domain/ids.js';
import { defaultQueueSettings } from '../domain/queue-settings.js';
import type { QueueView } from './queues-api.js';
import type { TaskDraft, TaskView } from './tasks-api.js';
import { defined } from './defined.js';
import { errorOf, problemToWire, refusalFromWire, refusalOf } from './problem-wire.js';
import { queueDraftFromWire, queueDraftToWire, queueFromWire, queueToWire } from './queues-wire.js';
import { reportFromWire } from './reports-wire.js';
import { taskDraftFromWire, taskDraftToWire, taskFromWire, taskToWire } from './tasks-wire.js';
import { invalidField } from './problem-wire.js';

const taskId = '0197f0c4-8a3b-7c21-9d55-3f0f5a1c2b3d' as TaskId;
const workerId = '7b0d2c1e-5a4f-4e3d-8c2b-1a0f9e8d7c6b' as WorkerId;
const lease = '3f1d7a52-0c8e-4b6f-9a41-5d2e8c7b6a90';
const at = new Date('2026-01-31T12:00:00.123Z');

/** Through JSON, as on the wire. */
const sent = <Wire>(wire: Wire): Wire => JSON.parse(JSON.stringify(wire)) as Wire;

const task: TaskView = {
  taskId,
  taskType: 'chat',
  queue: 'gpt-4o',
  priority: 'low',
  effectivePriority: 'high',
  status: 'executing',
  parameters: { snake_case: { camelCase: 1 } },
  requiredCapabilities: ['gpu'],
  retryCount: 1,
  maxRetries: 3,
  attempt: 2,
  createdAt: at,
  runAt: at,
  eligibleAt: at,
  queuedAt: at,
  assignedAt: at,
  startedAt: at,
  completedAt: null,
  assignedWorkerId: workerId,
  progress: { percent: 50, message: null },
  result: { myKey: [1] },
  error: { code: 'X', message: 'm', retriable: true, retryAfterSeconds: 2, details: { aB: 1 } },
  timeoutSeconds: 600,
  dispatchDeadline: at,
  workflowId: 'w',
  idempotencyKey: 'k',
  cost: { tokens: 1 },
  usage: { tokens: 2 },
  userId: 'u',
  tags: ['t'],
  traceId: 'tr',
  currentStateDurationSeconds: 1.5,
  executionDurationSeconds: 1.5,
  deferrals: 2,
  returns: 1,
  history: {
    states: [
      { state: 'queued', at },
      { state: 'executing', at, workerId, attempt: 1, reason: 'r' },
    ],
    attempts: [
      {
        attempt: 1,
        workerId,
        startedAt: at,
        endedAt: at,
        outcome: 'failed',
        error: { code: 'X', message: 'm', retriable: false },
      },
    ],
  },
};

const queue: QueueView = {
  name: 'a/b',
  version: 7,
  inForce: false,
  settings: {
    limits: [{ unit: 'tokens', rate: 3, perSeconds: 60, burst: 2 }, { use: 'account' }],
    maxConcurrency: 5,
    maxReady: 10,
    maxActive: null,
    maxLanes: 500,
    paused: true,
    pausedUntil: at,
    ageing: { lowToMediumMs: 1_500, lowToHighMs: null, mediumToHighMs: 3_000 },
  },
  live: {
    depth: { high: 1, medium: 2, low: 3 },
    effectiveDepth: { high: 3, medium: 2, low: 1 },
    backlog: 9,
    active: null,
    running: 4,
    tokens: { tokens: 1.5 },
    nextTokenInMs: 20,
    usage: [
      {
        limit: 'account',
        unit: 'tokens',
        used: 12,
        allowed: 100,
        perSeconds: 60,
        countedSeconds: 7.5,
        nextInMs: 20,
      },
    ],
    recoveryFactor: 0.25,
    pausedUntil: at,
    pausedWhy: 'asked to',
    circuit: 'half_open',
    oldestAgeSeconds: 3,
    lastMinute: { started: 1, completed: 2, failed: 3 },
  },
};

describe('the wire', () => {
  it('brings a task there and back with nothing lost', () => {
    expect(taskFromWire(sent(taskToWire(task)))).toEqual(task);
    const { history, ...plain } = task;
    expect(history).toBeDefined();
    expect(taskFromWire(sent(taskToWire(plain)))).toEqual(plain);
  });

  it('is snake_case, and leaves the keys of users alone', () => {
    const wire = taskToWire(task);
    expect(Object.keys(wire).filter((key) => /[A-Z]/.test(key))).toEqual([]);
    expect(wire).toMatchObject({
      created_at: '2026-01-31T12:00:00.123Z',
      parameters: { snake_case: { camelCase: 1 } },
      result: { myKey: [1] },
    });
  });

  it('brings a queue there and back with nothing lost', () => {
    expect(queueFromWire(sent(queueToWire(queue)))).toEqual(queue);
    const unaged = { ...queue, settings: { ...queue.settings, ageing: noAgeing } };
    expect(queueToWire(unaged).ageing).toBeNull();
    expect(queueFromWire(sent(queueToWire(unaged)))).toEqual(unaged);
  });

  it('an ageing that names one threshold says nothing of the others', () => {
    expect(queueDraftFromWire({ ageing: { low_to_high_seconds: 60 } })).toEqual({
      ageing: { lowToHighMs: 60_000 },
    });
    expect(queueDraftFromWire({ ageing: null })).toEqual({ ageing: null });
    expect(queueDraftFromWire({})).toEqual({});
  });

  it('R-CH7: brings the whole settings of a queue there and back, with the end of a pause', () => {
    const change = { ...defaultQueueSettings, paused: true, pausedUntil: at };
    expect(queueDraftFromWire(sent(queueDraftToWire(change)))).toEqual(change);
    expect(queueDraftFromWire(sent(queueDraftToWire({ paused: false })))).toEqual({
      paused: false,
    });
  });

  it('brings any draft there and back, absent members absent', () => {
    const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
    const drafts = fc.record({
      taskType: fc.string(),
      queue: optional(fc.string()),
      priority: optional(fc.constantFrom('high', 'medium', 'low')),
      parameters: optional(fc.dictionary(fc.string(), fc.jsonValue())),
      requiredCapabilities: optional(fc.array(fc.string())),
      timeoutSeconds: optional(fc.nat()),
      maxRetries: optional(fc.nat()),
      idempotencyKey: optional(fc.string()),
      workflowId: optional(fc.string()),
      workflowOnFailure: optional(fc.constantFrom('halt', 'continue')),
      runAt: optional(fc.date({ noInvalidDate: true })),
      delaySeconds: optional(fc.nat()),
      dispatchDeadlineSeconds: optional(fc.option(fc.nat())),
      cost: optional(fc.dictionary(fc.string(), fc.nat())),
      userId: optional(fc.string()),
      tags: optional(fc.array(fc.string())),
      traceId: optional(fc.string()),
      traceparent: optional(fc.string()),
    });
    fc.assert(
      fc.property(drafts, (members) => {
        const draft = defined(members) as TaskDraft;
        expect(taskDraftFromWire(taskDraftToWire(draft))).toStrictEqual(draft);
      }),
    );
  });

  it('brings a refusal there and back', () => {
    const refusal = refusalOf(
      invalidField('/tasks/3/priority', 'must be one of high, medium, low'),
    );
    const wire = sent(problemToWire({ ...refusal, retryAfterSeconds: 3 }, '/api/v1/tasks/batch'));
    expect(wire).toMatchObject({
      status: 400,
      type: '/docs#invalid_request',
      retry_after_seconds: 3,
    });
    const error = errorOf(refusalFromWire(wire));
    expect(error).toMatchObject({ code: 'invalid_request', retryAfterSeconds: 3 });
    expect(error.errors).toEqual(refusal.errors);
  });

  it('reads a code that it does not know by its status', () => {
    const wire = { type: '', title: '', status: 503, code: 'from_the_future', detail: 'd' };
    expect(refusalFromWire(wire).code).toBe('unavailable');
  });

  it.each([
    ['too large', 'x'.repeat(1024 * 1024)],
    ['too deep', JSON.parse('['.repeat(300) + ']'.repeat(300)) as unknown],
    ['out of range', JSON.parse('[1e999]') as unknown],
  ])('a result that is %s fails its attempt', (_name, result) => {
    const wire = { task_id: taskId, lease, status: 'completed', result } as never;
    expect(reportFromWire(wire, '')).toMatchObject({
      status: 'failed',
      error: { code: 'RESULT_TOO_LARGE', retriable: false },
    });
  });
});
