import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runCli } from '../support/cli.js';

const preload = join(import.meta.dirname, 'fixtures/print-loaded-modules.mjs');

it.each([['task', '01900000-0000-7000-8000-000000000000'], ['queues'], ['--help']])(
  '"sluice %s" loads neither a database nor a web server',
  async (...args) => {
    const remote = args[0] === '--help' ? [] : ['--url', 'http://127.0.0.1:1'];
    const { stderr } = await runCli([...args, ...remote], {
      env: { NODE_OPTIONS: `--import ${preload}` },
    });
    const loaded = stderr.split('\n').filter((line) => line.startsWith('loaded file:'));
    expect(loaded.some((line) => line.includes('/commander/'))).toBe(true);
    const heavy =
      /node_modules\/(fastify|@fastify|pg|@electric-sql|ioredis|cli-progress)\/|\/dist\/(store|engine|server)\//;
    expect(loaded.filter((line) => heavy.test(line))).toEqual([]);
  },
);
