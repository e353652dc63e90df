import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect } from '../../src/client/connect.js';
import { defineTask } from '../../src/client/define-task.js';
import { Sluice } from '../../src/client/sluice.js';
import type { ProblemWire } from '../../src/protocol/problem-schema.js';
import type { PushbackPageWire } from '../../src/protocol/pushbacks-schema.js';
import type { TaskPageWire, TaskWire } from '../../src/protocol/tasks-schema.js';
import {
  createDashboard,
  type DashboardOptions,
  type FetchHandler,
} from '../../src/server/dashboard/index.js';
import { silentLog } from '../../src/runtime/log.js';
import { serve } from '../../src/server/serve.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { until } from '../support/until.js';
import { basePath } from './hosts.js';

const origin = 'https://app.example';
const secret = defineTask({ type: 'secret', run: (input) => input });

let database: TestDatabase;
let sluice: Sluice;
beforeAll(async () => {
  database = await createTestDatabase();
  sluice = await Sluice.open({ databaseUrl: database.url });
});
afterAll(async () => {
  await sluice.close();
  await database.drop();
});

const mount = (options: Partial<DashboardOptions> = {}) =>
  createDashboard(sluice, { basePath, authorize: () => 'admin', ...options });

interface Sent {
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** As the page sends it. */
function call(handler: FetchHandler, path: string, { method = 'GET', body, headers }: Sent = {}) {
  const hasBody = body !== undefined;
  return handler(
    new Request(`${origin}${basePath}${path}`, {
      method,
      headers: {
        host: 'app.example',
        'sec-fetch-site': 'same-origin',
        ...(hasBody ? { 'content-type': 'application/json' } : {}),
        ...headers,
      },
      ...(hasBody ? { body: JSON.stringify(body) } : {}),
    }),
  );
}

async function submit(): Promise<string> {
  return (await sluice.submit(secret, { token: 'abc' }, { queue: 'mounted' })).id;
}

describe('a dashboard under /admin/queues', () => {
  it.each([basePath, `${basePath}/`])('is found at %s with all that it loads', async (path) => {
    const handler = mount({ environment: 'staging' });
    const page = await handler(new Request(`${origin}${path}`));
    const html = await page.text();
    expect([page.status, page.headers.get('content-type')]).toEqual([
      200,
      'text/html; charset=utf-8',
    ]);
    expect(page.headers.get('content-security-policy')).not.toContain('unsafe-inline');
    expect(html).toContain('staging');
    expect(html).not.toMatch(/<script>|<style|style=/);
    const loaded = [...html.matchAll(/(?:src|href)="(\.\/[^"]+)"/g)].map(
      ([, found = '']) => new URL(found, `${origin}${path}`),
    );
    expect(loaded.map(({ pathname }) => pathname.replace(/-\w+\./, '.'))).toEqual([
      `${basePath}/assets/app.css`,
      `${basePath}/assets/app.js`,
    ]);
    for (const url of loaded) {
      const asset = await handler(new Request(url, { headers: { 'accept-encoding': 'gzip' } }));
      expect([asset.status, asset.headers.get('content-encoding')]).toEqual([200, 'gzip']);
      expect(asset.headers.get('cache-control')).toContain('immutable');
    }
  });

  it('answers its calls, and nothing else of the server', async () => {
    const handler = mount();
    expect((await call(handler, '/api/v1/queues')).status).toBe(200);
    for (const path of [
      '/metrics',
      '/internal/workers/register',
      '/sign-in',
      '/docs',
      '/assets/x.js',
      'x',
    ]) {
      expect([path, (await call(handler, path)).status]).toEqual([path, 404]);
    }
  });

  it('R-AD6: asks authorize about everything', async () => {
    const nobody = mount({ authorize: () => null });
    const elsewhere = mount({ authorize: () => Response.redirect(`${origin}/login`, 302) });
    for (const path of ['', '/assets/app.js', '/api/v1/queues']) {
      expect((await call(nobody, path)).status).toBe(401);
      expect((await call(elsewhere, path)).headers.get('location')).toBe(`${origin}/login`);
    }
  });

  it('R-AD6: changes nothing for a page of another site', async () => {
    const handler = mount();
    const pause = async (headers: Readonly<Record<string, string>>) => {
      const sent = { method: 'POST', body: {}, headers };
      return (await call(handler, '/api/v1/queues/mounted/pause', sent)).status;
    };
    expect(await pause({ 'sec-fetch-site': 'cross-site' })).toBe(403);
    expect(await pause({ 'sec-fetch-site': 'same-site', origin: 'https://b.example' })).toBe(403);
    expect(await pause({ cookie: 'sluice_session=x.y', 'sec-fetch-site': 'cross-site' })).toBe(403);
    expect(await pause({})).toBe(200);
    await sluice.queue('mounted').resume();
  });

  it('searches for text in parameters only where it shows them', async () => {
    await submit();
    const path = '/api/v1/tasks?queue=mounted&text=abc';
    const shown = await call(mount(), path);
    expect(((await shown.json()) as TaskPageWire).items.length).toBeGreaterThan(0);
    const hidden = await call(mount({ redact: true }), path);
    expect([hidden.status, ((await hidden.json()) as ProblemWire).code]).toEqual([
      403,
      'forbidden',
    ]);
    expect((await call(mount({ redact: true }), '/api/v1/tasks?queue=mounted')).status).toBe(200);
  });

  it('shows of parameters, errors and progress what redact leaves', async () => {
    const taskId = await submit();
    const parametersBy = async (redact: DashboardOptions['redact']) => {
      const options = redact === undefined ? {} : { redact };
      const answer = await call(mount(options), `/api/v1/tasks/${taskId}`);
      return ((await answer.json()) as TaskWire).parameters;
    };
    expect(await parametersBy(undefined)).toEqual({ token: 'abc' });
    expect(await parametersBy(true)).toEqual({ redacted: '[hidden]' });
    expect(
      await parametersBy((value, { field, taskType }) => ({ field, taskType, was: typeof value })),
    ).toEqual({ field: 'parameters', taskType: 'secret', was: 'object' });
  });

  it('R-AD6: shows of what a service said what redact leaves', async () => {
    await sluice.submit(secret, {}, { queue: 'pushed' });
    const { workerId } = await sluice.api.register({ queues: ['pushed'], capacity: 1 });
    const [task] = (await sluice.api.poll(workerId, { availableCapacity: 1, waitMs: 10_000 }))
      .tasks;
    if (task === undefined) throw new Error('no task came');
    const { taskId, lease } = task;
    const error = { code: 'RATE_LIMITED', message: 'key abc is too fast', retriable: true };
    await sluice.api.report(workerId, [{ taskId, lease, status: 'failed', error }]);
    const said = async (redact: DashboardOptions['redact']) => {
      const options = redact === undefined ? {} : { redact };
      const answer = await call(mount(options), '/api/v1/queues/pushed/pushbacks');
      const { items } = (await answer.json()) as PushbackPageWire;
      return items[0]?.message;
    };
    await until('it is written down', () => said(undefined));
    expect(await said(undefined)).toBe('key abc is too fast');
    expect(await said(true)).toBe('[hidden]');
    expect(await said((_, { field, taskType, queue }) => `${field} ${taskType} ${queue}`)).toBe(
      'error secret pushed',
    );
    await sluice.api.deregister(workerId);
  });

  it('MT: redact hides the message, the details and the stack of an error, and messages of progress', async () => {
    const shown = defineTask({
      type: 'leaky',
      run: async (_input, { progress, attempt }) => {
        progress(50, 'secret-progress');
        if (attempt === 1) throw new Error('secret-message', { cause: new Error('secret-cause') });
        await new Promise(() => undefined);
      },
      maxRetries: 1,
      retry: { delaySeconds: [0] },
    });
    const worker = sluice.worker([shown], { log: silentLog });
    await worker.start();
    const { id } = await sluice.submit(shown, {}, { queue: 'leaky' });
    const textBy = async (redact: boolean) => {
      const answer = await call(mount({ redact }), `/api/v1/tasks/${id}?include=history`);
      return answer.text();
    };
    await until('it runs again', async () =>
      (await textBy(false)).includes('"progress":{"percent"'),
    );
    const plain = await textBy(false);
    for (const secret of ['secret-progress', 'secret-message', 'secret-cause', 'mount.test.ts']) {
      expect(plain).toContain(secret);
    }
    const hidden = await textBy(true);
    expect(hidden).not.toMatch(/secret-|mount\.test\.ts/);
    expect(hidden).toContain('[hidden]');
    await sluice.api.cancelTask(id);
    await worker.stop();
  });
});

describe('R-OB12: who changed something through a mounted dashboard', () => {
  const ada = { role: 'admin', name: 'Ada Lovelace, 火', address: '203.0.113.7' } as const;
  /** What a browser could send to be somebody else, or somewhere else. */
  const forged = {
    'sluice-on-behalf-of': 'Mallory',
    'x-forwarded-for': '198.51.100.1',
    forwarded: 'for=198.51.100.1',
    authorization: 'Bearer sluice_x',
    cookie: 'sluice_session=x.y',
  };

  async function change(handler: FetchHandler, queue: string, taskId: string): Promise<string> {
    const sent = { method: 'PATCH', body: { max_concurrency: 3 }, headers: forged };
    expect((await call(handler, `/api/v1/queues/${queue}`, sent)).status).toBe(200);
    expect((await call(handler, `/api/v1/tasks/${taskId}`, { method: 'DELETE' })).status).toBe(200);
    return taskId;
  }

  it('an embedded Sluice: their name and address', async () => {
    const taskId = await change(mount({ authorize: () => ada }), 'ada-embedded', await submit());
    for (const subject of ['ada-embedded', taskId]) {
      const { items } = await sluice.api.listAudit({ subject });
      expect(items).toMatchObject([
        {
          actor: { kind: 'process', address: ada.address },
          details: { on_behalf_of: ada.name },
        },
      ]);
    }
    const theirs = await sluice.api.listAudit({ actor: ada.name });
    expect(theirs.items).toHaveLength(2);
  });

  it('a Sluice elsewhere: their name, beside the key of the program', async () => {
    const elsewhere = await createTestDatabase();
    const server = await serve({
      host: '127.0.0.1',
      port: 0,
      database: { kind: 'postgres', url: elsewhere.url },
    });
    try {
      const { key } = await server.engine.createKey({ name: 'the app', scopes: ['admin'] });
      const remote = connect(server.url, { apiKey: key });
      const handler = createDashboard(remote, { basePath, authorize: () => ada });
      const task = await remote.submit(secret, {}, { queue: 'ada-elsewhere' });
      const taskId = await change(handler, 'ada-elsewhere', task.id);
      for (const subject of ['ada-elsewhere', taskId]) {
        const { items } = await remote.api.listAudit({ subject });
        expect(items).toMatchObject([
          {
            actor: { kind: 'key', keyName: 'the app' },
            details: { on_behalf_of: ada.name },
          },
        ]);
      }
      await remote.close();
      await expect(remote.api.onBehalfOf(ada).resumeQueue('x')).rejects.toThrow('closed');
    } finally {
      await server.close();
      await elsewhere.drop();
    }
  });
});
