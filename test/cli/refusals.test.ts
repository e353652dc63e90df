import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { runCli, startCli } from '../support/cli.js';
import { createDataFolder } from '../support/pglite.js';
import { createTestDatabase } from '../support/postgres.js';
import { startPostgres } from '../support/services/postgres-server.js';

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const nobodyThere = 'http://127.0.0.1:1';

describe('the command line, when something is wrong', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-cli-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  it.each([
    ['a command that is not there', ['srve'], /unknown command 'srve'/],
    ['an option that is not there', ['tasks', '--sttus', 'queued'], /--sttus/],
    ['a choice that is not there', ['tasks', '--status', 'lost'], /Allowed choices are pending/],
    ['parameters that are not JSON', ['submit', 'a', '--params', '{a:1}'], /--params is not JSON/],
    ['parameters that are a list', ['submit', 'a', '--params', '[1]'], /must be a JSON object/],
    ['no file with parameters', ['submit', 'a', '--params', '@nowhere'], /can't read nowhere/],
    ['a cost without a unit', ['submit', 'a', '--cost', '1200'], /like tokens=1200/],
    ['a delay without a unit', ['submit', 'a', '--delay', '10'], /s, m, h or d/],
    ['retries without end', ['submit', 'a', '--retries', '101'], /whole number from 0 to 100/],
    [
      'what is no pattern',
      ['dlq', 'replay', '--pattern', 'x'],
      /as "sluice dlq analysis" lists it/,
    ],
    ['a negative threshold', ['alerts', 'set', 'age_p95', '--threshold=-5'], /0 or more, not -5/],
    [
      'seconds with a unit',
      ['alerts', 'set', 'age_p95', '--for', '5m'],
      /seconds, like 300, not 5m/,
    ],
    ['half of an id', ['cancel', '0197'], /whole id of a task/],
    [
      'a level that is not there',
      ['worker', '--module', 'a', '--log-level', 'all'],
      /Allowed choices/,
    ],
    [
      'a claim of nothing',
      ['worker', '--module', 'a', '--claim-batch', '0'],
      /whole number from 1 to 1000/,
    ],
    [
      'a threshold that is none',
      ['worker', '--module', 'a', '--latency-threshold', 'soon'],
      /number from 0\.001 .*like 2\.5/,
    ],
    ['no module', ['worker'], /required option '--module/],
    ['a number that is none', ['demo', '--tasks', 'many'], /whole number from 1/],
  ])('%s: says so and exits with 2', async (_, args, message) => {
    const { code, stdout, stderr } = await runCli(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(message);
  });

  it('a reader that has enough, like head, is no failure', async () => {
    const cli = spawn(process.execPath, [main, 'keys', 'generate'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    cli.stdout.destroy();
    const said = text(cli.stderr);
    const [code] = (await once(cli, 'exit')) as [number | null];
    expect([code, await said]).toEqual([0, '']);
  });

  it('no server: what happened and what to do, without a stack', async () => {
    const { code, stderr } = await runCli(['queues', '--url', nobodyThere]);
    expect(code).toBe(1);
    expect(stderr).toContain("http://127.0.0.1:1 can't be reached");
    expect(stderr).toContain('sluice serve');
    expect(stderr).not.toMatch(/^\s+at /m);
    const debugged = await runCli(['queues', '--url', nobodyThere], { env: { SLUICE_DEBUG: '1' } });
    expect(debugged.stderr).toMatch(/^\s+at /m);
  });

  it('a server whose Postgres is away: who asks is not told to start a server', async () => {
    const postgres = await startPostgres({ mortal: true });
    onTestFinished(() => postgres.stop());
    const serve = ['serve', '--port', '0', '--database-url', postgres.url, '--log-level', 'silent'];
    const [, url = ''] = await startCli(serve).waitForLine(/^Sluice is ready at (\S+)$/);
    await postgres.kill('SIGKILL');
    const { code, stderr } = await runCli(['queues', '--url', url]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^The server runs\. "sluice doctor"/m);
    expect(stderr).not.toMatch(/sluice serve|Is it running/);
    const module = join(folder, 'one.mjs');
    await writeFile(module, 'export const one = { type: "one", run: () => 1 };');
    const worker = startCli(['worker', '--url', url, '--module', module, '--log-level', 'silent']);
    await worker.waitForLine(/^Waiting: the server at \S+ answers, but is not ready/);
  });

  it('commands find the server by host and port in sluice.config.json', async () => {
    const cwd = join(folder, 'configured');
    await mkdir(cwd);
    const write = (values: object) =>
      writeFile(join(cwd, 'sluice.config.json'), JSON.stringify(values));
    const env = { SLUICE_URL: undefined };
    await write({ host: '::1', port: 1, scaleMax: 'many' });
    expect((await runCli(['queues'], { cwd, env })).stderr).toContain(
      "http://[::1]:1 can't be reached",
    );
    const named = await runCli(['queues', '--url', nobodyThere], { cwd, env });
    expect(named.stderr).toContain("http://127.0.0.1:1 can't be reached");
    await write({ port: 'x' });
    const wrong = await runCli(['queues'], { cwd, env });
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toMatch(/- port in sluice\.config\.json must be a whole number/);
  });

  it('R-RE10: settings that contradict each other stop the start, all in one message', async () => {
    const path = join(folder, 'bad.json');
    await writeFile(path, JSON.stringify({ leaseMs: 20_000, prot: 1 }));
    const { code, stderr } = await runCli(['serve', '--config', path, '--port', 'x']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^The settings are not valid:$/m);
    expect(stderr).toMatch(/- prot in .*bad\.json is not a setting/);
    expect(stderr).toMatch(/- --port must be a whole number/);
    expect(stderr).toMatch(
      /- leaseMs \(20000\) must be more than twice heartbeatIntervalMs \(10000\)/,
    );
  });

  it('R-AD6: another host than this machine is refused', async () => {
    const { code, stderr } = await runCli(['serve', '--host', '0.0.0.0', '--data', ':memory:']);
    expect(code).toBe(2);
    expect(stderr).toContain('Without API keys');
    expect(stderr).toContain('sluice keys create');
  });

  it('R-CH12: Redis with the embedded database is refused', async () => {
    const serve = ['serve', '--data', ':memory:', '--redis-url', 'redis://:secret@127.0.0.1:1'];
    const { code, stderr } = await runCli(serve);
    expect(code).toBe(2);
    expect(stderr).toMatch(/- --redis-url needs a Postgres server.*for one process/);
    expect(stderr).not.toContain('secret');
  });

  it('a port that is taken', async () => {
    const database = await createTestDatabase();
    const holder = createServer();
    await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
    const port = String((holder.address() as AddressInfo).port);
    const serve = ['serve', '--port', port, '--database-url', database.url];
    const { code, stderr } = await runCli([...serve, '--log-level', 'silent']);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(
        new RegExp(`^Port ${port} is taken by another process.\\n.*--port`),
      ) as string,
    });
    await new Promise((resolve) => holder.close(resolve));
    await database.drop();
  });

  it('a data folder that another process uses', async () => {
    const data = join(folder, 'data');
    createDataFolder(data);
    const serve = ['serve', '--port', '0', '--data', data, '--log-level', 'silent'];
    await startCli(serve).waitForLine(/^Sluice is ready/);
    const { code, stderr } = await runCli(serve);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^The data folder .* is in use by process \d+/);
  });

  it('modules that are no use to a worker', async () => {
    const empty = join(folder, 'empty.mjs');
    await writeFile(empty, 'export const nothing = 1;');
    const worker = (module: string) => runCli(['worker', '--url', nobodyThere, '--module', module]);
    expect((await worker(empty)).stderr).toMatch(/exports no task definitions\.\nExport what/);
    expect((await worker(join(folder, 'missing.mjs'))).stderr).toMatch(/There is no file/);

    const typed = join(folder, 'typed.ts');
    await writeFile(typed, 'export const nothing: number = 1;');
    const loadsTypes = (process.features as { typescript?: unknown }).typescript !== undefined;
    expect((await worker(typed)).stderr).toMatch(
      loadsTypes ? /exports no task definitions/ : /is TypeScript, which Node .* can't load/,
    );
  });
});
