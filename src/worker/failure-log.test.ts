import { describe, expect, it } from 'vitest';
import type { TaskId } from '../domain/ids.js';
import type { AfterFailure, ReportAnswer } from '../protocol/workers-api.js';
import { createLog } from '../runtime/log.js';
import { FailureLog } from './failure-log.js';

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly next?: string;
  readonly leftOut?: number;
  readonly kinds?: Readonly<Record<string, number>>;
}

const taskId = '01900000-0000-7000-8000-000000000000' as TaskId;
const task = { taskId, taskType: 'summarize', attempt: 2, parameters: { text: 'a secret' } };
const error = { code: 'HTTP_500', message: 'overloaded', retriable: true };

function answered(next?: AfterFailure): ReportAnswer {
  const status = next?.kind === 'dead_letter' ? 'dead_letter' : 'pending';
  return { taskId, accepted: true, status, ...(next === undefined ? {} : { next }) };
}

function logging() {
  const lines: Line[] = [];
  const clock = { nowMs: 0 };
  const log = createLog('info', { write: (text) => void lines.push(JSON.parse(text) as Line) });
  return { lines, clock, failures: new FailureLog(log, () => clock.nowMs) };
}

describe('FailureLog', () => {
  it('warns with task, type, attempt, code, message and what happens next, and no parameters', () => {
    const { lines, failures } = logging();
    failures.note(task, error, answered({ kind: 'retry', inSeconds: 2.0634 }));
    expect(lines).toEqual([
      {
        level: 40,
        time: expect.any(String) as string,
        task_type: 'summarize',
        attempt: 2,
        code: 'HTTP_500',
        message: 'overloaded',
        next: 'retry in 2.1 s',
        task_id: taskId,
        msg: 'attempt failed',
      },
    ]);
  });

  it.each<[ReportAnswer | null, string]>([
    [answered({ kind: 'deferral', inSeconds: 30 }), 'deferred for 30 s, at no cost'],
    [
      answered({ kind: 'dead_letter', reason: 'all 3 retries are spent' }),
      'dead letter: all 3 retries are spent',
    ],
    [answered(), 'pending'],
    [
      { taskId, accepted: false, reason: 'lease_lost' },
      'none: its lease was lost, another attempt may run',
    ],
    [null, 'the server could not be told'],
  ])('%o: %s', (answer, next) => {
    const { lines, failures } = logging();
    failures.note(task, error, answer);
    expect(lines).toMatchObject([{ next }]);
  });

  it('cuts a long message', () => {
    const { lines, failures } = logging();
    failures.note(task, { ...error, message: 'x'.repeat(10_000) }, null);
    expect(JSON.stringify(lines).length).toBeLessThan(1_000);
  });

  it('a flood gets 20 lines, then one a second, and the rest is counted by type and code', () => {
    const { lines, clock, failures } = logging();
    const retry = answered({ kind: 'retry', inSeconds: 1 });
    for (let index = 0; index < 1_000; index += 1) failures.note(task, error, retry);
    expect(lines).toHaveLength(20);
    clock.nowMs += 3_000;
    for (let index = 0; index < 1_000; index += 1) {
      failures.note(task, { ...error, code: `CODE_${index}` }, retry);
    }
    expect(lines).toHaveLength(23);
    failures.close();
    const { leftOut, kinds = {} } = lines.at(-1) ?? {};
    expect(leftOut).toBe(2_000 - 23);
    expect(kinds).toMatchObject({ 'summarize HTTP_500': 980, 'summarize CODE_3': 1 });
    expect(Object.keys(kinds)).toHaveLength(11);
    failures.close();
    expect(lines).toHaveLength(24);
  });
});
