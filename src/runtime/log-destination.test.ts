import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';

const log = join(import.meta.dirname, '../../dist/runtime/log.js');
/** A process of its own: who writes to a terminal is decided when it starts. */
const program = `import(${JSON.stringify(log)}).then(({ createLog }) =>
  createLog("info").warn({ queue: "chat" }, "circuit opened"))`;
const env = { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined };

describe('R-OB8: the form of the log, when nobody chose one', () => {
  it('is for people in a terminal', () => {
    if (inject('distIsStale')) throw new Error('dist is older than src: npm run build');
    // script runs a command in a terminal of its own.
    const command = `${process.execPath} -e '${program}'`;
    const text = execFileSync('script', ['-qec', command, '/dev/null'], { env, encoding: 'utf8' });
    expect(text).toContain('circuit opened');
    expect(text).toContain('queue');
    expect(text).not.toContain('{"');
  });

  it('is JSON in a pipe', () => {
    const command = `${process.execPath} -e '${program}' 2>&1 | cat`;
    const text = execFileSync('sh', ['-c', command], { env, encoding: 'utf8' });
    expect(JSON.parse(text)).toMatchObject({ level: 40, queue: 'chat', msg: 'circuit opened' });
  });
});
