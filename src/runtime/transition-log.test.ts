import { describe, expect, it } from 'vitest';
import type { TaskId } from '../domain/ids.js';
import type { TransitionMode } from './log-format.js';
import { createLog } from './log.js';
import {
  TransitionLog,
  type LoggedTransition,
  type TransitionLogOptions,
} from './transition-log.js';

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly left_out?: number;
  readonly kinds?: Readonly<Record<string, number>>;
}

const taskId = '01900000-0000-7000-8000-00000000000a' as TaskId;
const task = { taskId, taskType: 'summarize', queue: 'gpt-4o', attempt: 2, trace: null };
const retried: LoggedTransition = {
  ...task,
  workerId: 'w-1',
  from: 'executing',
  to: 'pending',
  outcome: 'failed',
  errorCode: 'HTTP_500',
  errorMessage: 'overloaded',
  retryInMs: 2063.4,
  durationMs: 812.6,
};
const completed: LoggedTransition = {
  ...task,
  from: 'executing',
  to: 'completed',
  outcome: 'succeeded',
};

function logging(
  mode: TransitionMode = 'problems',
  options: Partial<TransitionLogOptions> = {},
  level = 'info',
) {
  const lines: Line[] = [];
  const clock = { nowMs: 0 };
  const log = createLog(level, { write: (text) => void lines.push(JSON.parse(text) as Line) });
  const nowMs = () => clock.nowMs;
  return { lines, clock, log: new TransitionLog(log, { mode, nowMs, ...options }) };
}

describe('TransitionLog', () => {
  it('R-OB8: a line has task, queue, type, attempt, worker, trace, duration, states and reason', () => {
    const { lines, log } = logging();
    log.transition(retried);
    expect(lines).toEqual([
      {
        level: 40,
        time: expect.any(String) as string,
        msg: 'task retried',
        task_id: taskId,
        task_type: 'summarize',
        queue: 'gpt-4o',
        attempt: 2,
        from: 'executing',
        to: 'pending',
        outcome: 'failed',
        error_code: 'HTTP_500',
        error_message: 'overloaded',
        retry_in_ms: 2063,
        duration_ms: 813,
        worker_id: 'w-1',
        trace_id: '0190000000007000800000000000000a',
      },
    ]);
  });

  it('R-OB8: "all" has a line for healthy tasks as well, "problems" none, "off" nothing at all', () => {
    for (const [mode, wanted] of [
      ['all', ['task completed', 'task retried', 'circuit opened']],
      ['problems', ['task retried', 'circuit opened']],
      ['off', []],
    ] as const) {
      const { lines, log } = logging(mode);
      log.transition(completed);
      log.transition(retried);
      log.event('circuit opened', 'push_back', { queue: 'gpt-4o' });
      expect(lines.map(({ msg }) => msg)).toEqual(wanted);
    }
  });

  it('R-OB8: with a log that is silent nothing is on', () => {
    expect(logging('all', {}, 'silent').log.isOn).toBe(false);
    expect(logging('off').log.isOn).toBe(false);
    expect(logging('problems').log.isOn).toBe(true);
  });

  it('R-OB8: a given trace id is kept; of one that is not known nothing is said', () => {
    const { lines, log } = logging();
    log.transition({ ...retried, traceId: 'my-trace' });
    const { trace: _, ...unknown } = retried;
    log.transition(unknown);
    expect(lines[0]).toMatchObject({ trace_id: 'my-trace' });
    expect(lines[1]).not.toHaveProperty('trace_id');
  });

  it('R-AD6: what a handler threw can be left out; what the engine says stays', () => {
    const { lines, log } = logging('problems', { hidesThrown: true });
    log.transition(retried);
    log.transition({ ...retried, outcome: 'lapsed', errorMessage: 'Its worker fell silent.' });
    expect(lines[0]).not.toHaveProperty('error_message');
    expect(lines[0]).toMatchObject({ error_code: 'HTTP_500' });
    expect(lines[1]).toMatchObject({ error_message: 'Its worker fell silent.' });
  });

  it('cuts whatever people can make long', () => {
    const { lines, log } = logging();
    const long = 'x'.repeat(100_000);
    log.transition({
      ...retried,
      errorCode: long,
      errorMessage: long,
      reason: long,
      traceId: long,
    });
    expect(JSON.stringify(lines).length).toBeLessThan(2_000);
  });

  it('R-OB8: a flood gets 20 lines of each sort, then one a second; the rest is counted by type and code', () => {
    const { lines, clock, log } = logging();
    for (let index = 0; index < 1_000; index += 1) log.transition(retried);
    expect(lines).toHaveLength(20);
    log.transition({ ...retried, to: 'dead_letter', reason: 'all 3 retries are spent' });
    expect(lines.at(-1)).toMatchObject({ msg: 'task is a dead letter' });
    clock.nowMs += 3_000;
    for (let index = 0; index < 1_000; index += 1) {
      log.transition({ ...retried, errorCode: `CODE_${index}` });
    }
    expect(lines).toHaveLength(24);
    log.close();
    const { msg, left_out, kinds = {} } = lines.at(-1) ?? {};
    expect(msg).toBe('task retried: more than are logged one by one');
    expect(left_out).toBe(2_000 - 23);
    expect(kinds).toMatchObject({ 'summarize HTTP_500': 980, 'summarize CODE_3': 1 });
    expect(Object.keys(kinds)).toHaveLength(11);
    log.close();
    expect(lines).toHaveLength(25);
  });
});
