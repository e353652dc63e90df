import { expect, it } from 'vitest';
import type { TaskId } from '../domain/ids.js';
import type { AfterFailure, ReportAnswer } from '../protocol/workers-api.js';
import { createLog } from '../runtime/log.js';
import { TransitionLog } from '../runtime/transition-log.js';
import { AttemptLog } from './attempt-log.js';

const taskId = '01900000-0000-7000-8000-000000000000' as TaskId;
const task = {
  ...{ taskId, taskType: 'summarize', queue: 'gpt-4o', attempt: 2, traceId: 'mine' },
  parameters: { text: 'a secret' },
};
const error = { code: 'HTTP_500', message: 'overloaded', retriable: true };

function answered(next?: AfterFailure): ReportAnswer {
  const status = next?.kind === 'dead_letter' ? 'dead_letter' : 'pending';
  return { taskId, accepted: true, status, ...(next === undefined ? {} : { next }) };
}

function logging(mode: 'all' | 'problems') {
  const lines: Readonly<Record<string, unknown>>[] = [];
  const write = (text: string) => void lines.push(JSON.parse(text) as (typeof lines)[number]);
  const transitions = new TransitionLog(createLog('info', { write }), { mode });
  return { lines, attempts: new AttemptLog(transitions, () => 'w-1') };
}

it.each<[ReportAnswer | null, object]>([
  [answered({ kind: 'retry', inSeconds: 2.0634 }), { msg: 'task retried', retry_in_ms: 2063 }],
  [answered({ kind: 'deferral', inSeconds: 30 }), { msg: 'task deferred', retry_in_ms: 30_000 }],
  [
    answered({ kind: 'dead_letter', reason: 'all 3 retries are spent' }),
    { msg: 'task is a dead letter', reason: 'all 3 retries are spent' },
  ],
  [answered(), { msg: 'task retried', to: 'pending' }],
  [
    { taskId, accepted: false, reason: 'lease_lost' },
    { msg: 'attempt failed', reason: 'its lease was lost: another attempt may run' },
  ],
  [null, { msg: 'attempt failed', reason: 'the server was not told' }],
])('R-OB8: a failed attempt that was answered %o', (answer, wanted) => {
  const { lines, attempts } = logging('problems');
  attempts.started(task);
  attempts.failed(task, 1.5, error, answer);
  expect(lines).toMatchObject([
    {
      level: 40,
      task_id: taskId,
      worker_id: 'w-1',
      trace_id: 'mine',
      error_code: 'HTTP_500',
      error_message: 'overloaded',
      duration_ms: 1_500,
      ...wanted,
    },
  ]);
  expect(JSON.stringify(lines)).not.toContain('secret');
});

it('R-OB8: with "all" every attempt has a line when it starts and one when it ends', () => {
  const { lines, attempts } = logging('all');
  attempts.started(task);
  attempts.completed(task, 0.25);
  expect(lines).toMatchObject([
    { level: 30, msg: 'task started', from: 'queued', to: 'executing' },
    { level: 30, msg: 'task completed', to: 'completed', duration_ms: 250 },
  ]);
});
