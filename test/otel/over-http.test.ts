import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { connect } from '../../src/client/connect.js';
import { defineTask } from '../../src/client/define-task.js';
import { openEngine } from '../../src/engine/open-engine.js';
import { instrument } from '../../src/otel/index.js';
import { silentLog } from '../../src/runtime/log.js';
import { buildApp } from '../../src/server/app.js';
import { createMetrics } from '../../src/server/metrics.js';
import { runCli, startCli } from '../support/cli.js';
import { freshPglite } from '../support/pglite.js';
import { Recording, type Told } from './recording.js';
import { describeTracing } from './tracing.contract.js';

let url = '';
let close: (() => Promise<void>) | undefined;

describeTracing('over HTTP', async () => {
  const engine = await openEngine({ database: freshPglite() });
  const app = buildApp({
    api: engine,
    events: engine,
    metrics: createMetrics(engine, engine),
    health: {
      degradation: () => null,
      readiness: async () => ({ ready: true }),
      progress: async () => ({ progressing: true }),
    },
    log: silentLog,
  });
  url = await app.listen({ host: '127.0.0.1', port: 0 });
  close = async () => {
    await app.close();
    await engine.close();
  };
  return () => connect(url);
});

afterAll(() => close?.());

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';

/** As curl does it. Answers the id of the task. */
async function submit(taskType: string, queue: string): Promise<string> {
  const answer = await fetch(`${url}/api/v1/tasks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', traceparent: `00-${traceId}-${spanId}-01` },
    body: JSON.stringify({ task_type: taskType, queue }),
  });
  return ((await answer.json()) as { task_id: string }).task_id;
}

it('R-OB2: a traceparent header of another program is the parent of the attempt', async () => {
  const recording = new Recording();
  recording.start();
  const task = defineTask({ type: 'translate', run: () => 'done' });
  const sluice = instrument(connect(url), { structure: 'parent' });
  await sluice.worker([task], { log: silentLog }).start();
  const taskId = await submit('translate', 'curl');
  await sluice.task(taskId).result();
  expect(await recording.ended('process curl')).toMatchObject({
    traceId,
    parentId: spanId,
    attributes: { 'messaging.message.id': taskId },
  });
  await sluice.close();
  await recording.stop();
});

it('R-OB2: sluice worker --otel runs the handlers of a module in spans', async () => {
  const module = join(import.meta.dirname, 'fixtures/traced-tasks.mjs');
  const worker = startCli(['worker', '--url', url, '--module', module, '--otel', 'parent']);
  await submit('translate-elsewhere', 'cli');
  await worker.waitForLine(/"name":"settle cli"/);
  const spans = worker.stdout
    .filter((line) => line.startsWith('span '))
    .map((line) => JSON.parse(line.slice('span '.length)) as Told);
  const [, model, run] = spans;
  expect(spans).toMatchObject([
    { name: 'wait cli', traceId, parentId: spanId },
    { name: 'call the model', traceId, parentId: run?.spanId },
    { name: 'process cli', traceId, parentId: spanId, links: 0 },
    { name: 'settle cli', traceId, parentId: run?.spanId },
  ]);
  expect(model?.spanId).not.toBe(run?.spanId);
});

it('R-OB2: sluice worker --otel refuses another structure', async () => {
  const refused = await runCli(['worker', '--module', 'x.js', '--otel', 'sideways']);
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain('Allowed choices are link, parent');
});
