import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli, startCli } from '../support/cli.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

interface Queue {
  limits: object[];
  max_concurrency: number | null;
  max_ready: number;
  paused: boolean;
  paused_until: string | null;
  ageing: object | null;
}

describe('sluice limit', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());

  /** Ends with its test: one for each. */
  async function serve(): Promise<(...args: string[]) => ReturnType<typeof runCli>> {
    const args = ['serve', '--port', '0', '--database-url', database.url, '--log-level', 'warn'];
    const [, url = ''] = await startCli(args).waitForLine(/^Sluice is ready at (http:\S+)$/);
    return (...command) => runCli([...command, '--url', url]);
  }

  it(
    'R-CH4, R-CH7: sets what is named, keeps the rest, shows and removes',
    { timeout: 180_000 },
    async () => {
      const sluice = await serve();
      const said = async (...args: string[]) => {
        const { code, stdout, stderr } = await sluice(...args);
        expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' });
        return stdout;
      };
      const json = async (...args: string[]) => JSON.parse(await said(...args, '--json')) as Queue;

      expect(
        await said('limit', 'gpt-4o', '--rpm', '500', '--tpm', '30000', '--concurrency', '20'),
      ).toBe('gpt-4o: 500 requests a minute, 30,000 tokens a minute, 20 at once');
      const shown = await said('limit', 'gpt-4o');
      expect(shown).toMatch(/^gpt-4o: 500 requests a minute, 30,000 tokens a minute, 20 at once$/m);
      expect(shown).toMatch(/^requests +0 of 500 used in \S+ \w+ so far, next free now$/m);
      expect(shown).toMatch(/^tokens +0 of 30,000 used in \S+ \w+ so far, next free now$/m);
      expect(shown).toMatch(/^running +0 of 20$/m);

      expect(await said('limit', 'gpt-4o', '--rps', '10', '--burst', '20')).toBe(
        'gpt-4o: 30,000 tokens a minute, 10 requests a second (bursts of 20), 20 at once',
      );
      expect(await said('limits')).toMatch(/^No shared limits/);
      expect(await said('limits', 'set', 'account', '--rate', 'images=50/3600')).toBe(
        'account: 50 images an hour',
      );
      expect(await said('limits')).toMatch(/^account +50 images an hour$/m);
      expect(await said('limit', 'gpt-4o', '--use', 'account')).toBe(
        'gpt-4o: 30,000 tokens a minute, 10 requests a second (bursts of 20), ' +
          '50 images an hour shared as account, 20 at once',
      );
      const inUse = await sluice('limits', 'delete', 'account');
      expect(inUse).toMatchObject({ code: 1, stdout: '' });
      expect(inUse.stderr).toContain('A queue uses the limit account.');

      const until = '2030-01-31T12:00:00.000Z';
      expect(await said('pause', 'gpt-4o', '--until', until)).toBe(
        `gpt-4o is paused until ${until}`,
      );
      const kept = await json('limit', 'gpt-4o', '--tpm', '60000');
      expect(kept).toMatchObject({ paused: true, paused_until: until, max_concurrency: 20 });
      expect(kept.limits).toHaveLength(3);
      expect(kept.limits).toContainEqual({
        unit: 'tokens',
        rate: 60_000,
        per_seconds: 60,
        burst: null,
      });
      expect(await said('queues')).toMatch(
        /^gpt-4o .* 0\/10 requests, 0\/50 images, 0\/60,000 tokens +paused until 2030-01-31/m,
      );

      expect(await said('limit', 'gpt-4o', '--none', '--rpm', '5')).toBe(
        'gpt-4o: 5 requests a minute',
      );
      expect(await said('limit', 'gpt-4o', '--none')).toBe('gpt-4o: no limits');
      expect(await json('limit', 'gpt-4o')).toMatchObject({
        limits: [],
        max_concurrency: null,
        paused: true,
        max_ready: 10_000,
        ageing: { low_to_high_seconds: 1800 },
      });
      expect(await said('limits', 'delete', 'account')).toBe('account is deleted');
      expect(await said('resume', 'gpt-4o')).toBe('gpt-4o goes on');
      expect(await said('pause', 'gpt-4o')).toBe('gpt-4o is paused until resumed');
      expect(await said('pause', 'gpt-4o', '--for', '10m')).toMatch(/^gpt-4o is paused until 2/);

      const unknown = await sluice('limit', 'nobody-made-this');
      expect(unknown).toMatchObject({ code: 1, stdout: '' });
      expect(unknown.stderr).toContain('There is no queue nobody-made-this.');
      const nowhere = await sluice('limit', 'gpt-4o', '--use', 'nobody');
      expect(nowhere).toMatchObject({ code: 1, stdout: '' });
      expect(nowhere.stderr).toContain('There is no limit nobody.');
    },
  );

  it.each([
    ['a rate of 0', ['limit', 'q', '--rpm', '0'], /whole number from 1 to 1000000000/],
    ['half a rate', ['limit', 'q', '--tpm', '1.5'], /whole number from 1/],
    ['a rate in words', ['limit', 'q', '--rps', 'many'], /whole number from 1/],
    ['a rate without its window', ['limit', 'q', '--rate', 'images=5'], /like images=50\/3600/],
    ['a window of nothing', ['limit', 'q', '--rate', 'images=5/0'], /whole number from 1/],
    ['one unit twice', ['limit', 'q', '--rpm', '5', '--rps', '1'], /Only one limit for requests/],
    ['a burst of nothing', ['limit', 'q', '--burst', '5'], /--burst goes with a rate/],
    ['nobody at once', ['limit', 'q', '--concurrency', '0'], /whole number from 1/],
    ['no queue', ['limit'], /missing required argument 'queue'/],
    ['a shared limit of nothing', ['limits', 'set', 'a'], /has one rate/],
    ['a shared limit of two', ['limits', 'set', 'a', '--rpm', '1', '--tpm', '1'], /has one rate/],
    ['a pause that is over', ['pause', 'q', '--until', '2020-01-01T00:00:00Z'], /over already/],
    ['a pause until some time', ['pause', 'q', '--until', 'tomorrow'], /a time with its zone/],
    ['a pause of ten', ['pause', 'q', '--for', '10'], /s, m, h or d/],
    [
      'two ends of a pause',
      ['pause', 'q', '--until', '2030-01-01T00:00:00Z', '--for', '1m'],
      /cannot be used with/,
    ],
  ])('%s: says so and exits with 2', async (_, args, message) => {
    const { code, stdout, stderr } = await runCli(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(message);
  });
});
