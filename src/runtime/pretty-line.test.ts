import { expect, it } from 'vitest';
import { createLog, type Logger } from './log.js';
import { prettyLine } from './pretty-line.js';

const plain = { hasColors: false, columns: Infinity };

function printed(write: (log: Logger) => void, terminal = plain): string {
  const lines: string[] = [];
  const keep = (text: string) => void lines.push(prettyLine(text, terminal));
  write(createLog('trace', { write: keep }));
  return lines.join('');
}

it('prints time, level, message and fields on one line', () => {
  const text = printed((log) =>
    log.warn({ error_code: 'HTTP_500', error_message: 'not today', attempt: 2 }, 'task retried'),
  );
  expect(text).toMatch(
    /^\d\d:\d\d:\d\d WARN {2}task retried {2}error_code=HTTP_500 {2}error_message="not today" {2}attempt=2\n$/,
  );
});

it('prints the stack of an error, and of its causes, below', () => {
  const cause = new Error('refused');
  const text = printed((log) => log.error({ err: new Error('away', { cause }) }, 'a call failed'));
  expect(text).toMatch(/^\S+ ERROR a call failed\n {4}Error: away\n {8}at /);
  expect(text).toMatch(/\n {4}Error: refused\n {8}at /);
});

it('hands the terminal no control characters', () => {
  const text = printed((log) =>
    log.info({ 'a\nb': 'x\u001B[2Jy' }, 'red \u001B[31m\u009Bm\r\nnext'),
  );
  expect(text.trimEnd()).toMatch(
    /INFO {2}red \\u001b\[31m\uFFFDm\\r\\nnext {2}a\\nb="x\\u001b\[2Jy"$/,
  );
});

it('colors only what it is told to, and leaves alone what is no line of the log', () => {
  expect(printed((log) => log.warn('careful'), { ...plain, hasColors: true })).toContain(
    '\u001B[33mWARN \u001B[39m',
  );
  expect(prettyLine('plain text\n', plain)).toBe('plain text\n');
});

it('a field that would pass the last column goes to the next line, under the message', () => {
  const fields = { task_type: 'summarize', message: 'm'.repeat(30), next: 'retry in 2.1 s' };
  const text = printed((log) => log.warn(fields, 'attempt failed'), { ...plain, columns: 60 });
  const lines = text.trimEnd().split('\n');
  expect(lines.map((line) => line.slice(15))).toEqual([
    'attempt failed  task_type=summarize',
    `message=${'m'.repeat(30)}`,
    'next="retry in 2.1 s"',
  ]);
  expect(lines.slice(1).every((line) => line.startsWith(' '.repeat(15)))).toBe(true);
});

it('leaves out a trace id that is the id of the task', () => {
  const text = (trace: string) =>
    printed((log) => log.info({ trace_id: trace, task_id: '01a1-02' }, 'task started'));
  expect(text('01a102')).toMatch(/INFO {2}task started {2}task_id=01a1-02\n$/);
  expect(text('mine')).toMatch(/ {2}trace_id=mine {2}task_id=01a1-02\n$/);
});
