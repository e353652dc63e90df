import { Client } from 'pg';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { connect } from '../../src/client/connect.js';
import { defineTask } from '../../src/client/define-task.js';
import type { Sluice } from '../../src/client/sluice.js';
import { silentLog } from '../../src/runtime/log.js';
import { serve, type RunningServer } from '../../src/server/serve.js';
import { NonRetriableError } from '../../src/worker/errors.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { startChromium } from '../support/services/chromium.js';
import { until } from '../support/until.js';

const broken = defineTask({
  type: 'broken',
  run: () => {
    throw new NonRetriableError('no such model', {
      cause: new Error('404'),
      details: { region: 'eu' },
    });
  },
});
const waiting = defineTask({ type: 'waiting', run: () => null });

interface Stage {
  readonly database: TestDatabase;
  readonly server: RunningServer;
  readonly sluice: Sluice;
  readonly browser: Browser;
  readonly sql: Client;
}

let stage: Stage;
beforeAll(async () => {
  if (inject('distIsStale')) throw new Error('dist is older than src: npm run build');
  const database = await createTestDatabase();
  const server = await serve({
    host: '127.0.0.1',
    port: 0,
    database: { kind: 'postgres', url: database.url },
  });
  const sql = new Client({ connectionString: database.url });
  await sql.connect();
  stage = { database, server, sql, sluice: connect(server.url), browser: await startChromium() };
});
afterAll(async () => {
  await stage.browser.close();
  await stage.sluice.close();
  await stage.sql.end();
  await stage.server.close();
  await stage.database.drop();
});

async function visit(address: string, heading: string): Promise<{ page: Page; asked: string[] }> {
  const page = await stage.browser.newPage();
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(`${stage.server.url}/${address}`);
  await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
  return { page, asked };
}

describe('what the dashboard says', () => {
  it('R-OB6: all is not well when the queue that is paused is the 1,201st', async () => {
    const { sql, sluice } = stage;
    await sql.query(
      `insert into sluice.queues (name, version) select 'a-' || n, 0 from generate_series(1, 1200) n`,
    );
    const { page, asked } = await visit('#/', 'Overview');
    await page.getByText('All is well').waitFor();
    await sluice.submit(waiting, {}, { queue: 'zz-last' });
    await sluice.queue('zz-last').pause();
    await until('the server names it', async () => {
      return (await sluice.api.getAttention()).queues.items[0]?.name === 'zz-last';
    });
    // On a busy machine the page asks again after half a minute.
    await page.reload();
    await page.getByText('zz-last is paused and 1 task waits in it.').waitFor();
    expect(asked.filter((url) => url.includes('limit=1000'))).toEqual([]);
    await sluice.queue('zz-last').resume();
    await page.close();
  });

  it('R-OB6: attempts and errors show their details and where they were thrown, folded', async () => {
    const { sluice } = stage;
    const worker = sluice.worker([broken], { name: 'breaker', log: silentLog });
    await worker.start();
    const { id } = await sluice.submit(broken, {}, { queue: 'errors' });
    await sluice.submitMany(
      broken,
      Array.from({ length: 60 }, () => ({ input: {}, options: { queue: 'errors' } })),
    );
    await until('all of them are dead letters', async () => {
      return (await sluice.api.listDeadLetters({}, { limit: 1 })).totalCount === 61;
    });
    const { page } = await visit(`#/tasks/${id}`, 'broken dead letter');
    const stacks = page.locator('pre.stack');
    await until('the error and its attempt have one', async () => (await stacks.count()) === 2);
    expect(await stacks.first().isVisible()).toBe(false);
    await page.getByText('Stack', { exact: true }).first().click();
    const text = await stacks.first().innerText();
    expect(text).toMatch(/no such model\n {4}at .*details\.test\.ts/);
    expect(text).toContain('Caused by Error: 404');
    await page.getByText('Details', { exact: true }).first().click();
    await page.getByText('"eu"').first().waitFor();

    await page.goto(`${stage.server.url}/#/dead-letters`);
    const rows = page.locator('table').last().locator('tbody tr');
    await until('the first page', async () => (await rows.count()) === 50);
    await page.getByRole('button', { name: 'Show more' }).click();
    await until('all of them', async () => (await rows.count()) === 61);
    await worker.stop();
    await page.close();
  });

  it('R-OB11: a worker has a page with all that it tells', async () => {
    const { server, sluice, sql } = stage;
    const { workerId } = await server.engine.register({
      ...{ name: 'told', capacity: 5, version: '1.2.3', host: 'node-7', queues: ['held'] },
    });
    const { id } = await sluice.submit(waiting, {}, { queue: 'held' });
    const poll = { availableCapacity: 1, waitMs: 10_000 };
    expect((await server.engine.poll(workerId, poll)).tasks).toHaveLength(1);
    await server.engine.heartbeat(workerId, {
      ...{ currentLoad: 1, status: 'active', cpuUsage: 1.5, memoryUsage: 0.42 },
      ...{ eventLoopDelayMs: 12, consecutiveFailures: 7, health: { shard: 'blue' } },
    });
    await sluice.api.drainWorker(workerId);
    await sql.query('update sluice.tasks set deferrals = 2, returns = 1 where id = $1', [id]);
    await sql.query(
      `update sluice.workers set benched_until = now() - interval '1 s' where id = $1`,
      [workerId],
    );
    const { page } = await visit('#/workers', 'Workers');
    // It is tried again, and not kept from tasks any more.
    await page.getByText('is tried again').waitFor();
    await page.getByRole('link', { name: 'told' }).click();
    await page.getByRole('heading', { name: 'told', level: 1 }).waitFor();
    const facts = await page.locator('dl.facts').innerText();
    for (const fact of ['1.2.3', 'node-7', '1.5 cores', '42 %', '12 ms']) {
      expect(facts).toContain(fact);
    }
    expect(facts).toMatch(/failures in a row\s+7/i);
    await page.getByText('"blue"').waitFor();
    await page.locator(`a[href$="${id}"]`).click();
    await page.getByText('Taken and never started').waitFor();
    expect(await page.locator('dl.facts').innerText()).toMatch(/put off, at no cost\s+2 times/i);
    await page.close();
  });

  it('R-OB12: the audit goes on behind its first page, and can be filtered', async () => {
    await stage.sql.query(
      `insert into sluice.audit (at, actor, action, subject, changes, details)
       select date_trunc('milliseconds', now()), 'process', 'queue.pause', 'q' || n, '{}', '{"on_behalf_of":"Ada"}'
       from generate_series(1, 150) n`,
    );
    const { page } = await visit('#/audit', 'Audit');
    const rows = page.locator('tbody tr');
    await until('the first page', async () => (await rows.count()) === 100);
    await page.getByRole('button', { name: 'Show more' }).click();
    await until('the next one', async () => (await rows.count()) > 150);
    await page.getByLabel('What was changed, its whole name or id').fill('q17');
    await page.keyboard.press('Enter');
    await until('the one that matches', async () => (await rows.count()) === 1);
    expect(await rows.first().innerText()).toContain('Ada');
    await page.close();
  });

  it('R-OB6: long numbers are shown as the server has them, as doubles', async () => {
    const { sluice, sql } = stage;
    const { id } = await sluice.submit(waiting, {}, { queue: 'numbers' });
    await sql.query(`update sluice.task_inputs set parameters = $2::json where task_id = $1`, [
      id,
      '{"long":12345678901234567890,"exact":9007199254740991}',
    ]);
    const { page } = await visit(`#/tasks/${id}`, 'waiting');
    const parameters = page.getByRole('group', { name: 'Parameters' });
    await parameters.getByText('9007199254740991').waitFor();
    expect(await parameters.innerText()).toContain('12345678901234567000');
    await page.close();
  });

  it('R-OB6: a duplicate keeps the time before which it does not start, and says what it does not keep', async () => {
    const runAt = new Date(Date.now() + 86_400_000);
    const { id } = await stage.sluice.submit(
      waiting,
      {},
      { queue: 'later', runAt, workflowId: 'w1', dispatchDeadlineSeconds: 200_000 },
    );
    const { page } = await visit(`#/tasks/${id}`, 'waiting');
    await page.getByRole('button', { name: 'Duplicate …' }).click();
    await page.getByText('Not copied: its workflow, the deadline for its start.').waitFor();
    await page.getByRole('button', { name: 'Submit' }).click();
    await page.getByText('The new task is submitted.').waitFor();
    const { items } = await stage.sluice.api.listTasks({ queue: 'later' });
    expect(items).toHaveLength(2);
    expect(items.map((task) => task.runAt)).toEqual([runAt, runAt]);
    expect(items.map((task) => task.workflowId).sort()).toEqual([null, 'w1'].sort());
    await page.close();
  });

  it('R-AD6: the keys and their help lead to no page that a reader may not see', async () => {
    const { key } = await stage.server.engine.createKey({ name: 'reader', scopes: ['read'] });
    const page = await stage.browser.newPage();
    await page.goto(stage.server.url);
    await page.getByLabel('API key').fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('?');
    const help = page.getByRole('dialog');
    await help.getByText('Dead letters').waitFor();
    expect(await help.innerText()).not.toMatch(/API keys|Audit/);
    await page.keyboard.press('Escape');
    await page.keyboard.press('g');
    await page.keyboard.press('k');
    await page.keyboard.press('g');
    await page.keyboard.press('q');
    await page.getByRole('heading', { name: 'Queues' }).waitFor();
    await page.close();
  });
});
