import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { runOn } from '../support/services/postgres-statement.js';
import { startCli, type CliProcess } from '../support/cli.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  // A bug of ours, or a full disk: the statement fails, and Postgres shows the row.
  await runOn(
    database.url,
    `alter table sluice.task_inputs add constraint no_boom check (parameters::text not like '%boom%')`,
  );
});
afterAll(() => database.drop());

const canary = (field: string) => `canary-${field}-7f3a`;

interface Served {
  readonly process: CliProcess;
  readonly post: (
    path: string,
    body: unknown,
    headers?: Record<string, string>,
  ) => Promise<{ status: number; answer: Record<string, unknown> }>;
}

async function serve(...flags: string[]): Promise<Served> {
  const process = startCli([
    ...['serve', '--port', '0', '--log-level', 'trace', '--database-url', database.url],
    ...flags,
  ]);
  const [, base = ''] = await process.waitForLine(/Sluice is ready at (\S+)/);
  const post: Served['post'] = async (path, body, headers = {}) => {
    const response = await fetch(`${base}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    return { status: response.status, answer: (await response.json()) as Record<string, unknown> };
  };
  return { process, post };
}

const secrets = {
  authorization: `Bearer ${canary('key')}`,
  cookie: `session=${canary('cookie')}`,
};

/** A task that carries something in every field that is its owner's, to its end. */
async function useAll({ post }: Served): Promise<void> {
  const { answer: worker } = await post('/internal/workers/register', { name: canary('name') });
  const at = `/internal/workers/${String(worker.worker_id)}`;
  for (const status of ['completed', 'failed']) {
    const queue = `logged-${status}-${process.hrtime.bigint()}`;
    const draft = {
      task_type: 'chat',
      queue,
      parameters: { text: canary('parameters'), password: canary('password') },
      idempotency_key: canary(`idempotency-${queue}`),
      workflow_id: canary(`workflow-${queue}`),
      user_id: canary('user'),
      tags: [canary('tag')],
      trace_id: 'a-trace-of-the-caller',
    };
    await post(`/api/v1/tasks?${canary('query')}=1`, draft, secrets);
    await post('/api/v1/tasks', draft, { 'idempotency-key': canary('header') });
    await post('/api/v1/tasks', draft);
    const poll = { available_capacity: 1, wait_seconds: 30, queues: [queue] };
    const { answer } = await post(`${at}/poll`, poll);
    const [{ task_id, lease } = { task_id: '', lease: '' }] = answer.tasks as {
      task_id: string;
      lease: string;
    }[];
    const held = { task_id, lease };
    const health = { note: canary('health') };
    await post(`${at}/heartbeat`, { current_load: 1, status: 'active', health });
    await post(`${at}/progress`, {
      ...held,
      progress_percent: 5,
      status_message: canary('progress'),
    });
    const error = {
      code: 'MODEL_BROKE',
      message: canary('message'),
      retriable: false,
      details: canary('details'),
    };
    const end = status === 'failed' ? { error } : { result: { text: canary('result') } };
    const ended = await post(`${at}/result`, { ...held, status, ...end });
    expect(ended.answer).toMatchObject({ accepted: true });
  }
}

it('R-AD6: of what a client sends only names, the trace id and error codes are in the log, at any level, also when a statement fails', async () => {
  const served = await serve('--log-transitions', 'all');
  await useAll(served);
  await served.post('/api/v1/tasks', `{"task_type": ${canary('broken')}`, secrets);
  await served.post(`/api/v1/${canary('path')}`, {}, secrets);
  const failed = await served.post(
    '/api/v1/tasks',
    { task_type: 'chat', parameters: { boom: canary('row') }, user_id: canary('row-user') },
    secrets,
  );
  expect(failed).toMatchObject({ status: 500, answer: { code: 'internal' } });
  expect(JSON.stringify(failed.answer)).not.toMatch(/no_boom|canary/);
  await served.process.waitForLine(/no_boom/);
  await served.process.kill('SIGTERM');
  const printed = [...served.process.stdout, ...served.process.stderr];
  expect(printed.filter((line) => line.includes('canary'))).toEqual([]);
  const [dead] = printed.filter((line) => line.includes('"task is a dead letter"'));
  expect(JSON.parse(dead ?? '')).toMatchObject({
    level: 40,
    task_type: 'chat',
    error_code: 'MODEL_BROKE',
    trace_id: 'a-trace-of-the-caller',
  });
});

it('R-AD6: switched on, parameters, results and errors are, but for what is called a secret', async () => {
  const served = await serve('--log-payloads');
  await useAll(served);
  await served.process.kill('SIGTERM');
  const printed = served.process.stderr.join('\n');
  for (const field of ['parameters', 'result', 'message', 'details']) {
    expect(printed).toContain(canary(field));
  }
  for (const field of ['password', 'key', 'cookie', 'header']) {
    expect(printed).not.toContain(canary(field));
  }
});
