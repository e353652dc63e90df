import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import openapiTS, { astToString } from 'openapi-typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { documentedRoutes, type OpenApi } from './openapi.js';
import { useHttp } from './support.js';

const http = useHttp();
const run = promisify(execFile);
const project = join(import.meta.dirname, '../..');

const compilerOptions = {
  strict: true,
  exactOptionalPropertyTypes: true,
  module: 'nodenext',
  target: 'es2023',
  types: ['node'],
};

/** What a user writes with the types of openapi-typescript and with openapi-fetch. */
const program = `import createClient from 'openapi-fetch';
import type { paths } from './sluice.js';

const [, , baseUrl = ''] = process.argv;
const sluice = createClient<paths>({ baseUrl });

function good<Data>({ data, error }: { data?: Data; error?: unknown }): Data {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

const receipt = good(
  await sluice.POST('/api/v1/tasks', {
    body: { task_type: 'count', parameters: { text: 'to be or not', nested: { a: 1 } } },
  }),
);

const { worker_id } = good(
  await sluice.POST('/internal/workers/register', { body: { task_types: ['count'], capacity: 1 } }),
);
const path = { worker_id };
const { tasks } = good(
  await sluice.POST('/internal/workers/{worker_id}/poll', {
    params: { path },
    body: { available_capacity: 1, wait_seconds: 20 },
  }),
);
for (const { task_id, lease, parameters } of tasks) {
  const result = \`\${String(parameters.text).split(' ').length} words\`;
  good(
    await sluice.POST('/internal/workers/{worker_id}/result', {
      params: { path },
      body: { task_id, lease, status: 'completed', result },
    }),
  );
}

const ended = good(
  await sluice.GET('/api/v1/tasks/{task_id}/wait', {
    params: { path: { task_id: receipt.task_id }, query: { timeout_seconds: 20 } },
  }),
);
console.log(ended.result);
`;

describe('the OpenAPI document', () => {
  let folder: string;
  beforeAll(() => {
    // Inside the project, so that its node_modules are found.
    const cache = join(project, 'node_modules/.cache');
    mkdirSync(cache, { recursive: true });
    folder = mkdtempSync(join(cache, 'generated-client-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const document = async () => (await http().call({ url: '/openapi.json' })).json<OpenApi>();

  it('passes the rules that Redocly recommends', async () => {
    const config = await createConfig({ extends: ['recommended'] });
    const source = JSON.stringify(await document());
    const problems = await lintFromString({ source, absoluteRef: 'openapi.json', config });
    expect(problems.map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([]);
  });

  it('names every operation once', async () => {
    const routes = await documentedRoutes((call) => http().call(call));
    const ids = routes.map(({ operation }) => operation.operationId);
    expect(ids).not.toContain(undefined);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('gives a TypeScript client that compiles and runs a task', async () => {
    const types = astToString(await openapiTS(JSON.stringify(await document())));
    writeFileSync(join(folder, 'sluice.d.ts'), types);
    writeFileSync(join(folder, 'client.ts'), program);
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
    await http().app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = http().app.server.address() as { port: number };

    const tsc = join(project, 'node_modules/typescript/bin/tsc');
    const compiled = run(process.execPath, [tsc, '-p', folder]);
    await compiled.catch((error: unknown) => expect((error as { stdout: string }).stdout).toBe(''));
    const { stdout } = await run(process.execPath, ['client.js', `http://127.0.0.1:${port}`], {
      cwd: folder,
    });
    expect(stdout).toBe('4 words\n');
  });
});
