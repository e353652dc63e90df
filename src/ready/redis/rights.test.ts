import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { LocalBus } from '../../runtime/bus.js';
import { silentLog } from '../../runtime/log.js';
import {
  askRedis,
  startRedis,
  type RunningRedis,
} from '../../../test/support/services/redis-server.js';
import { openRedis } from './connection.js';
import { RedisReadyQueue } from './redis-ready-queue.js';
import { findMissingRight, probeScript } from './rights.js';

const prefix = 'sluice:{test}:';

it('the probe tries every command of the scripts, and no other', () => {
  const folder = join(import.meta.dirname, 'lua');
  const scripts = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.lua'))
    .map((name) => readFileSync(join(folder, name), 'utf8'));
  expect(commandsIn(probeScript)).toEqual(commandsIn(scripts.join('\n')));
});

function commandsIn(text: string): string[] {
  const found = [...text.matchAll(/\bcall\('([A-Z]+)'/g)].map(([, command = '']) => command);
  return [...new Set(found)].sort();
}

describe('R-CH14: what a user may not do is named', () => {
  let redis: RunningRedis;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  const needed = ['~sluice:*', '&sluice:*', '+@all', '-@dangerous', '+info'];

  it.each([
    ['nothing, with what the documentation names', [], null],
    ['scripts', ['-@scripting'], /eval/],
    ['a command inside of a script', ['-zpopmin'], /ZPOPMIN/],
    ['to search for keys', ['-scan'], /NOPERM.*scan/],
    ['our keys', ['resetkeys', '~other:*'], /NOPERM|can't access/],
    ['to publish', ['-publish'], /publish/],
    ['to subscribe', ['-subscribe'], /subscribe/],
    ['our channels', ['resetchannels'], /NOPERM/],
  ])('%s', async (_, taken, expected) => {
    await askRedis(redis.url, 'acl', 'setuser', 'user', 'reset', 'on', '>p', ...needed, ...taken);
    const connection = await openRedis(`redis://user:p@127.0.0.1:${redis.port}`, silentLog, prefix);
    try {
      const missing = await findMissingRight(connection.client, prefix);
      if (expected === null) {
        expect(missing).toBeNull();
        expect(connection.trouble()).toBeNull();
      } else {
        expect(missing).toMatch(expected);
        expect(connection.trouble()).toMatch(/^Redis at .* refuses: .*ACL SETUSER/);
      }
    } finally {
      await connection.close();
    }
    expect(await askRedis(redis.url, 'keys', '*')).toEqual([]);
  });

  it('a right to search that is taken away later', async () => {
    const changeUser = (...rules: string[]) => askRedis(redis.url, 'acl', 'setuser', 'u', ...rules);
    await changeUser('reset', 'on', '>p', ...needed);
    const warned: unknown[] = [];
    const log = { ...silentLog, warn: (...said: unknown[]) => void warned.push(said) };
    const connection = await openRedis(`redis://u:p@127.0.0.1:${redis.port}`, silentLog, prefix);
    const queue = new RedisReadyQueue({ connection, bus: new LocalBus(), prefix, log });
    try {
      await changeUser('-scan');
      expect(await queue.beginRestore(1)).toBe('yours');
      const nothing = { limits: [], queues: [], levels: [], running: [], behind: [] };
      expect(await queue.restore({ generation: 1, ...nothing })).toBe(false);
      expect(queue.trouble()).toMatch(/^Redis refuses: NOPERM.*scan.*ACL SETUSER/);
      expect(JSON.stringify(warned)).toMatch(/NOPERM.*scan.*Redis does not serve the ready queue/);
    } finally {
      await queue.close();
      await connection.close();
    }
  });
});
