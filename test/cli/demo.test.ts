import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli, startCli } from '../support/cli.js';
import { until } from '../support/until.js';

// Each starts an embedded database and three processes: on a busy machine that takes a while.
describe('demo', () => {
  let folder: string;
  let env: Record<string, string>;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-demo-test-'));
    // A database of the user's, and settings that would not even start, must not matter.
    env = { TMPDIR: folder, DATABASE_URL: 'postgres://127.0.0.1:1/none', SLUICE_PORT: 'nonsense' };
  });
  afterAll(() => rm(folder, { recursive: true }));

  it('runs every call to its end, says so, and leaves nothing behind', async () => {
    const { code, stdout } = await runCli(['demo', '--tasks', '200'], { env });
    const lines = stdout.split('\n');
    expect(code).toBe(0);
    expect(lines.at(-1)).toBe('200 submitted, 200 completed, 0 lost');
    expect(stdout).toMatch(/^queue +tasks +per second +wait p50 +wait p95 +retried$/m);
    expect(stdout).toMatch(/^all +200 /m);
    expect(await readdir(folder)).toEqual([]);
  });

  it('R-OB6: prints where its dashboard is while it runs, and with --keep it stays up until Ctrl-C', async () => {
    const demo = startCli(['demo', '--keep', '--tasks', '50'], { env });
    const [, atFirst = ''] = await demo.waitForLine(/^50 model calls over 5 queues at (http:\S+),/);
    expect(await titleOf(atFirst)).toBe('Sluice');
    await demo.waitForLine(/^50 submitted, 50 completed, 0 lost$/);
    const [, url = ''] = await demo.waitForLine(/stays up at (http:\S+) until Ctrl-C/);
    expect(url).toBe(atFirst);
    expect(await titleOf(url)).toBe('Sluice');
    expect(await demo.kill('SIGINT')).toEqual({ code: 0, signal: null });
    await expect(fetch(new URL('/readyz', url))).rejects.toThrow('fetch failed');
    expect(await readdir(folder)).toEqual([]);
  });

  it('when it is killed hard, its server ends all the same', async () => {
    const demo = startCli(['demo', '--tasks', '1000'], { env });
    const [, url = ''] = await demo.waitForLine(/ queues at (http:\S+),/);
    process.kill(demo.pid, 'SIGKILL');
    const isGone = () =>
      fetch(new URL('/readyz', url)).then(
        () => false,
        () => true,
      );
    await until('the server to be gone', isGone);
  });
});

/** Of the dashboard, which is at `/`. */
async function titleOf(url: string): Promise<string | undefined> {
  const page = await (await fetch(url)).text();
  return /<title>(.*)<\/title>/.exec(page)?.[1];
}
