import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runCli, startCli, type CliProcess } from '../support/cli.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

const tasks = join(import.meta.dirname, 'fixtures/tasks.ts');
const typedTasks = join(import.meta.dirname, 'fixtures/typed-tasks.ts');

describe('the command line, as a person uses it', () => {
  // A server that is killed at the end of its test keeps its turn for a while: a database for each.
  const databases: TestDatabase[] = [];
  afterAll(() => Promise.all(databases.map((database) => database.drop())));

  async function newDatabase(): Promise<TestDatabase> {
    const database = await createTestDatabase();
    databases.push(database);
    return database;
  }

  async function startServer(
    database?: TestDatabase,
  ): Promise<{ server: CliProcess; url: string }> {
    const { url: databaseUrl } = database ?? (await newDatabase());
    const args = ['serve', '--port', '0', '--database-url', databaseUrl, '--log-level', 'warn'];
    const server = startCli(args);
    const [, url = ''] = await server.waitForLine(/^Sluice is ready at (http:\S+)$/);
    return { server, url };
  }

  async function startWorker(url: string): Promise<CliProcess> {
    // R-OB13: what a worker is told by its environment; an empty variable says nothing.
    const env = { SLUICE_CONCURRENCY: '3', SLUICE_CLAIM_BATCH: '2', SLUICE_LATENCY_THRESHOLD: '' };
    const worker = startCli(['worker', '--url', url, '--module', tasks], { env });
    await worker.waitForLine(/^Worker \S+ is ready for reject, linger, nap, words at http/);
    return worker;
  }

  const json = async (url: string, ...args: string[]): Promise<unknown> => {
    const { code, stdout, stderr } = await runCli([...args, '--json', '--url', url]);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    return JSON.parse(stdout);
  };

  it('submits, waits, lists, explains and replays', async () => {
    const { url } = await startServer();
    const worker = await startWorker(url);

    const submit = ['submit', 'words', '--params', '{"text":"to be or not"}', '--url', url];
    const waited = await runCli([...submit, '--wait', '--queue', 'gpt-4o', '--priority', 'high']);
    expect(waited).toMatchObject({ code: 0, stdout: '4' });
    expect(waited.stderr).toMatch(/^Submitted \S+ to gpt-4o/);

    const refused = await runCli(['submit', 'nobody', '--url', url]);
    expect(refused.stdout).toMatch(/^Submitted \S+ to default/);
    const { items } = (await json(url, 'tasks', '--type', 'nobody')) as {
      items: { task_id: string }[];
    };
    const [waiting] = items;
    const explained = await runCli(['task', waiting?.task_id ?? '', '--explain', '--url', url]);
    expect(explained.stdout).toMatch(/is queued\n {2}no_worker {2}/);

    const task = (await json(url, 'submit', 'words', '--params', '{"text":"one"}', '--wait')) as {
      task_id: string;
      result: unknown;
    };
    expect(task.result).toBe(1);
    const shown = await runCli(['task', task.task_id, '--url', url]);
    expect(shown.stdout).toMatch(/^state +completed$/m);
    expect(shown.stdout).toMatch(/^result +1$/m);
    expect(await json(url, 'task', task.task_id)).toMatchObject({ task_id: task.task_id });

    const list = await runCli(['tasks', '--queue', 'gpt-4o', '--url', url]);
    expect(list.stdout).toMatch(/words +gpt-4o +high +completed +1/);
    expect((await runCli(['queues', '--url', url])).stdout).toMatch(/^gpt-4o +0 +0 +0 +0 +0 +1/m);
    expect((await runCli(['workers', '--url', url])).stdout).toMatch(
      /active +0 +3 .*reject, linger, nap, words/,
    );

    const failed = await runCli(['submit', 'reject', '--wait', '--url', url]);
    expect(failed).toMatchObject({ code: 1, stdout: '' });
    expect(failed.stderr).toContain('The task ended as dead_letter: NO_MODEL: no such model');
    const [warning] = await worker.waitForLine(/^\{.*"msg":"task is a dead letter"\}$/);
    expect(JSON.parse(warning)).toMatchObject({
      level: 40,
      task_type: 'reject',
      attempt: 1,
      from: 'executing',
      to: 'dead_letter',
      error_code: 'NO_MODEL',
      error_message: 'no such model',
      reason: 'NO_MODEL is not retried',
    });
    expect((await runCli(['dlq', '--url', url])).stdout).toMatch(
      /reject +default +1 .* NO_MODEL +no such model$/m,
    );
    const [, pattern = ''] =
      /^ *1 +(\w{16}) +reject +NO_MODEL +default +0 % .* no such model$/m.exec(
        (await runCli(['dlq', 'analysis', '--url', url])).stdout,
      ) ?? [];
    const ofPattern = await runCli([
      'dlq',
      'replay',
      '--pattern',
      pattern,
      '--dry-run',
      '--url',
      url,
    ]);
    expect(ofPattern.stdout).toMatch(/^1 would be replayed/);
    expect(await runCli(['dlq', 'replay', '--url', url])).toMatchObject({ code: 2, stdout: '' });
    for (const command of [['tasks'], ['dlq'], ['dlq', 'analysis'], ['queues'], ['workers']]) {
      const { stdout } = await runCli([...command, '--url', url], { env: { COLUMNS: '80' } });
      const lengths = stdout.split('\n').map(({ length }) => length);
      expect({ command, longest: Math.max(...lengths) <= 80 }).toEqual({ command, longest: true });
    }
    const replayed = await runCli(['dlq', 'replay', '--pattern', pattern, '--url', url]);
    expect(replayed).toMatchObject({ code: 0, stdout: '1 replayed' });
  });

  it('submits with a delay, a cost, a workflow and parameters of a file, cancels and pauses', async () => {
    const { url } = await startServer();
    const file = ['--params', `@${join(import.meta.dirname, 'fixtures/parameters.json')}`];
    const later = ['--delay', '1h', '--retries', '0', '--workflow', 'order-7'];
    const cost = ['--cost', 'tokens=1200', '--cost', 'images=2'];
    const submitted = await json(url, 'submit', 'words', ...file, ...later, ...cost);
    const { task_id: id } = submitted as { task_id: string };
    expect(await json(url, 'task', id)).toMatchObject({
      status: 'pending',
      parameters: { text: 'to be or not' },
      max_retries: 0,
      workflow_id: 'order-7',
      cost: { tokens: 1200, images: 2 },
    });
    const cancelled = await runCli(['cancel', id, '--url', url]);
    expect(cancelled).toMatchObject({ code: 0, stdout: `${id} is cancelled` });

    const mistyped = await runCli(['pause', 'defualt', '--url', url]);
    expect(mistyped).toMatchObject({ code: 1, stdout: '' });
    expect(mistyped.stderr).toBe('There is no queue defualt.\nDid you mean default?');
    const unknown = await runCli(['resume', 'nosuch', '--url', url]);
    expect(unknown.stderr).toMatch(/^There is no queue nosuch\.\n"sluice queues" lists/);
    expect(await json(url, 'queues')).toMatchObject({ items: [{ name: 'default' }] });
  });

  it('a submit by hand gets what the worker of its type defines', async () => {
    const { url } = await startServer();
    expect((await runCli(['task-types', '--url', url])).stdout).toMatch(/^No task types yet/);
    const module = ['--module', typedTasks, '--code-version', '1.2.0'];
    await startCli(['worker', '--url', url, ...module]).waitForLine(/is ready for summarize/);
    const params = ['--params', '{"text":"hello"}'];
    const done = await runCli(['submit', 'summarize', ...params, '--wait', '--url', url]);
    expect(done).toMatchObject({ code: 0, stdout: '5' });
    expect(done.stderr).toMatch(/^Submitted \S+ to gpt-4o/);
    const table = await runCli(['task-types', '--url', url]);
    expect(table.stdout).toMatch(/^summarize +gpt-4o +4 +90 s +1,200 tokens +1\.2\.0$/m);
    expect(await json(url, 'task-types')).toMatchObject({
      items: [{ task_type: 'summarize', queue: 'gpt-4o', has_input_schema: true }],
      next_cursor: null,
    });
    const one = await runCli(['task-types', 'summarize', '--url', url]);
    expect(one.stdout).toMatch(/^priority +medium$/m);
    expect(one.stdout).toMatch(/^input +\{.*"required":\["text"\]/m);
  });

  it('R-WO8: SIGTERM lets a worker finish what it runs, and ends it with 0', async () => {
    const { url } = await startServer();
    const worker = await startWorker(url);
    const receipt = (await json(url, 'submit', 'nap')) as { task_id: string };
    await worker.waitForLine(/^napping$/);
    expect(await worker.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    expect(await json(url, 'task', receipt.task_id)).toMatchObject({
      status: 'completed',
      result: 'rested',
    });
  });

  it('R-WO8: a second signal ends a worker at once', async () => {
    const { url } = await startServer();
    const worker = await startWorker(url);
    await json(url, 'submit', 'linger');
    await worker.waitForLine(/^lingering$/);
    // Two of the same kind could arrive as one.
    process.kill(worker.pid, 'SIGTERM');
    expect(await worker.kill('SIGINT')).toEqual({ code: 1, signal: null });
  });

  it('a server that stops ends its open polls and exits with 0', async () => {
    const { server, url } = await startServer();
    await startWorker(url);
    expect(await server.kill('SIGINT')).toEqual({ code: 0, signal: null });
  });

  it('R-CH12: a second server on the same database serves as well, before and after the first one ends', async () => {
    const database = await newDatabase();
    const { server } = await startServer(database);
    const args = ['serve', '--port', '0', '--database-url', database.url, '--log-level', 'warn'];
    const second = startCli(args);
    await second.waitForLine(/^Sluice is ready at http/);
    await server.kill('SIGTERM');
    expect(await second.kill('SIGINT')).toEqual({ code: 0, signal: null });
  });
});
