import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { NodeHttpApi } from '../../src/client/node-http-api.js';
import { runCli, startCli } from '../support/cli.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

describe('sluice tasks', () => {
  let database: TestDatabase;
  let url: string;
  beforeAll(async () => {
    database = await createTestDatabase();
    const args = ['serve', '--port', '0', '--database-url', database.url, '--log-level', 'warn'];
    [, url = ''] = await startCli(args).waitForLine(/^Sluice is ready at (http:\S+)$/);
  });
  afterAll(() => database.drop());

  const tasks = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await runCli(['tasks', ...args, '--url', url]);
    expect({ args, code, stderr }).toMatchObject({ args, code: 0 });
    return stdout;
  };

  it(
    'changes all that a filter meets, in as many calls as it takes',
    { timeout: 120_000 },
    async () => {
      const api = new NodeHttpApi(url);
      for (let from = 0; from < 2_500; from += 500) {
        const some = Array.from({ length: 500 }, (_, index) => {
          return { taskType: 'call', queue: 'gpt', tags: [`n${from + index}`], parameters: {} };
        });
        await api.submitMany(some);
      }
      await api.submit({ taskType: 'call', queue: 'other', parameters: {} });
      const gpt = ['--queue', 'gpt'];
      expect(await tasks('reprioritise', ...gpt, '--to', 'high', '--dry-run')).toBe(
        '2500 would be given the new priority',
      );
      expect(await tasks('reprioritise', ...gpt, '--tag', 'n7', '--to', 'high')).toBe(
        '1 have priority high now',
      );
      expect(JSON.parse(await tasks('cancel', ...gpt, '--json'))).toEqual({
        cancelled: 2_500,
        next_cursor: null,
      });
      expect(await tasks('replay', ...gpt)).toBe('0 replayed');
      expect(await tasks('replay', ...gpt, '--status', 'cancelled', '--dry-run')).toBe(
        '2500 would be replayed',
      );
      const fast = ['--status', 'cancelled', '--per-second', '1000000'];
      expect(await tasks('replay', ...gpt, ...fast)).toBe('2500 replayed');
      expect(await tasks('--queue', 'other')).toContain('call');
      expect(JSON.parse(await tasks('cancel', '--status', 'queued', '--json'))).toMatchObject({
        cancelled: 2_501,
      });
    },
  );

  it('says what is missing, and changes nothing', async () => {
    for (const action of [['cancel'], ['replay'], ['reprioritise', '--to', 'low']]) {
      const refused = await runCli(['tasks', ...action, '--url', url]);
      expect(refused).toMatchObject({ code: 2, stdout: '' });
      expect(refused.stderr).toContain('Which ones? Name --status, --queue,');
    }
    const noPriority = await runCli(['tasks', 'reprioritise', '--queue', 'gpt', '--url', url]);
    expect(noPriority.stderr).toContain("required option '--to <priority>' not specified");
    const ended = await runCli(['tasks', 'cancel', '--status', 'completed', '--url', url]);
    expect(ended.stderr).toContain('Allowed choices are pending, queued, assigned, executing');
  });
});
