import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { connect } from '../src/client/connect.js';
import { serve } from '../src/server/serve.js';
import { createTestDatabase } from './support/postgres.js';

const examples = join(import.meta.dirname, '../examples');
const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;

type Example = ChildProcessByStdio<null, Readable, null>;

describe('examples', () => {
  let folder: string;
  const running = new Set<Example>();
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-examples-'));
  });
  afterEach(() => {
    for (const example of running) example.kill('SIGKILL');
  });
  afterAll(() => rm(folder, { recursive: true }));

  function start(name: string, ...args: string[]): Example {
    const example = spawn(process.execPath, ['--import', tsx, join(examples, name), ...args], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    running.add(example);
    example.once('exit', () => running.delete(example));
    return example;
  }

  it('quickstart.ts runs a task in its own process', async () => {
    const example = start('quickstart.ts');
    const exited = once(example, 'exit');
    const lines: string[] = [];
    for await (const line of createInterface({ input: example.stdout })) lines.push(line);
    expect(lines).toEqual(['4 words']);
    expect(await exited).toEqual([0, null]);
  });

  it('plain-fetch-worker.mjs takes tasks with nothing but HTTP', async () => {
    const database = await createTestDatabase();
    const server = await serve({
      host: '127.0.0.1',
      port: 0,
      database: { kind: 'postgres', url: database.url },
    });
    const sluice = connect(server.url);
    const example = start('plain-fetch-worker.mjs', server.url);
    await once(createInterface({ input: example.stdout }), 'line');

    const parameters = { text: 'to be or not' };
    const { taskId } = await sluice.api.submit({ taskType: 'count-words', parameters });
    const broken = await sluice.api.submit({ taskType: 'count-words', maxRetries: 0 });
    await expect(sluice.task(taskId).result()).resolves.toEqual({ words: 4 });
    await expect(sluice.task(broken.taskId).ended()).resolves.toMatchObject({
      status: 'dead_letter',
      error: { code: 'ERROR' },
    });

    const exited = once(example, 'exit');
    example.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
    await server.close();
    await database.drop();
  });
});
