import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';
import { serve } from '../../src/server/serve.js';
import { createTestDatabase } from '../support/postgres.js';
import { startChromium } from '../support/services/chromium.js';
import { until } from '../support/until.js';
import { long, mend, openServedStand, quick, type ServedStand } from './served-stand.js';
import {
  open,
  scrollsSideways,
  seriousFaults,
  signIn,
  visit,
  type Place,
  type Visit,
} from './visit.js';

let stand: ServedStand;
let browser: Browser;
beforeAll(async () => {
  if (inject('distIsStale')) throw new Error('dist is older than src: npm run build');
  [stand, browser] = await Promise.all([openServedStand(), startChromium()]);
});
afterAll(async () => {
  await browser.close();
  await stand.close();
});

const readable: readonly Place[] = [
  ['#/', 'Overview'],
  ['#/queues', 'Queues'],
  ['#/queues/gpt-4o', 'gpt-4o'],
  ['#/tasks', 'Tasks'],
  ['#/workers', 'Workers'],
  ['#/dead-letters', 'Dead letters'],
  ['#/alerts', 'Alerts'],
];
const ofAdmins: readonly Place[] = [
  ['#/keys', 'API keys'],
  ['#/audit', 'Audit'],
];

/** All pages, that of a dead letter included. */
async function places(): Promise<readonly Place[]> {
  const { items } = await stand.sluice.api.listDeadLetters({}, { limit: 1 });
  return [...readable, ...ofAdmins, [`#/tasks/${items[0]?.taskId ?? ''}`, 'broken']];
}

async function signedIn(
  role: keyof ServedStand['keys'] = 'admin',
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const visited = await signIn(browser, stand.url, stand.keys[role], options);
  onTestFinished(() => visited.page.context().close());
  return visited;
}

async function click(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name, exact: true }).click();
}

/** What the tile of a page says, as soon as it says it. */
async function seeTile(page: Page, label: string, figure: RegExp): Promise<void> {
  await page
    .locator('.tile', { has: page.locator('dt', { hasText: label }) })
    .locator('.figure', { hasText: figure })
    .waitFor();
}

async function startLong(queue: string): Promise<string> {
  const { id } = await stand.sluice.submit(long, {}, { queue });
  await until('it to run', async () => {
    return (await stand.sluice.task(id).status()).status === 'executing';
  });
  return id;
}

/** Each dialog, how it is come by, and its heading. */
const dialogs: readonly (readonly [Place, button: string, title: string])[] = [
  [['#/', 'Overview'], 'Keyboard shortcuts', 'Keyboard'],
  [['#/queues/gpt-4o', 'gpt-4o'], 'Pause …', 'Pause gpt-4o'],
  [['#/queues/gpt-4o', 'gpt-4o'], 'Settings …', 'Settings of gpt-4o'],
  [['#/keys', 'API keys'], 'New key …', 'New API key'],
];

describe('the dashboard in a browser', () => {
  it('every page and dialog: no complaint, nothing serious for axe, light and dark', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page, complaints } = await signedIn('admin', { colorScheme });
      const faults: Record<string, string[]> = {};
      const look = async (name: string) => {
        const found = await seriousFaults(page);
        if (found.length > 0) faults[name] = found;
      };
      for (const place of await places()) {
        await open(page, place);
        await look(place[0]);
      }
      for (const [place, button, title] of dialogs) {
        await open(page, place);
        await click(page, button);
        await page.getByRole('dialog', { name: title }).waitFor();
        await look(title);
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({ state: 'detached' });
      }
      expect(await page.locator('.environment').textContent()).toBe('testing');
      expect({ faults, complaints }).toEqual({ faults: {}, complaints: [] });
      const door = await visit(browser, stand.url, { colorScheme });
      expect(await seriousFaults(door.page)).toEqual([]);
      // The door itself is an answer of 401.
      expect(door.complaints.filter((text) => !text.includes('401'))).toEqual([]);
      await door.page.context().close();
    }
  });

  it('nothing scrolls sideways on a phone', async () => {
    const viewport = { width: 360, height: 780 };
    const door = await visit(browser, stand.url, { viewport });
    expect(await scrollsSideways(door.page)).toBe(false);
    await door.page.context().close();
    const { page } = await signedIn('admin', { viewport });
    const wide: string[] = [];
    for (const place of await places()) {
      await open(page, place);
      if (await scrollsSideways(page)) wide.push(place[0]);
    }
    expect(wide).toEqual([]);
  });

  it('keys: g q, /, ?', async () => {
    const { page } = await signedIn();
    await page.keyboard.press('g');
    await page.keyboard.press('q');
    await page.getByRole('heading', { name: 'Queues', level: 1 }).waitFor();
    await page.getByLabel('Search queues by name').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('claude');
    await page.getByText(/^1 of \d+ queues/).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  it('R-RL2: raises a limit, and the rate is seen to change', async () => {
    const { page, complaints } = await signedIn();
    const queue = stand.sluice.queue('limited');
    await queue.change({ limits: [{ unit: 'requests', rate: 1, perSeconds: 3_600 }] });
    await stand.sluice.submitMany(
      quick,
      Array.from({ length: 100 }, () => ({ input: {}, options: { queue: 'limited' } })),
    );
    await open(page, ['#/queues/limited', 'limited']);
    await seeTile(page, 'Waiting', /^99$/);
    await page.getByText('1 used in the last').waitFor();
    await click(page, 'Settings …');
    await page.getByLabel('Limit 1: how many').fill('6000');
    await page.getByLabel('Limit 1: seconds').fill('60');
    await click(page, 'Save');
    await page.getByText('6,000 requests a minute').waitFor();
    await seeTile(page, 'Waiting', /^0$/);
    await seeTile(page, 'Completed in the last minute', /^100$/);
    expect(complaints).toEqual([]);
  });

  it('pauses a queue for the worker of another server, and resumes it', async () => {
    const { page, complaints } = await signedIn();
    await open(page, ['#/queues/embeddings', 'embeddings']);
    await click(page, 'Pause …');
    await click(page, 'Pause');
    await page.locator('h1 .badge', { hasText: 'paused' }).waitFor();
    const { id } = await stand.sluice.submit(quick, {}, { queue: 'embeddings' });
    await open(page, [`#/tasks/${id}`, 'quick']);
    await page
      .getByText(/paused/i)
      .first()
      .waitFor();
    await open(page, ['#/queues/embeddings', 'embeddings']);
    await seeTile(page, 'Waiting', /^1$/);
    await click(page, 'Resume');
    await seeTile(page, 'Waiting', /^0$/);
    expect((await stand.sluice.task(id).status()).status).toBe('completed');
    expect(complaints).toEqual([]);
  });

  it('says why a task waits, its place in line, and when it should start', async () => {
    const { page, complaints } = await signedIn();
    const queue = stand.sluice.queue('slow');
    await queue.change({ limits: [{ unit: 'requests', rate: 1, perSeconds: 600 }] });
    for (let before = 0; before < 2; before += 1) {
      await stand.sluice.submit(quick, {}, { queue: 'slow' });
    }
    const { id } = await stand.sluice.submit(quick, {}, { queue: 'slow' });
    await open(page, [`#/tasks/${id}`, 'quick']);
    await page.getByRole('heading', { name: 'Why it is not running' }).waitFor();
    await page.getByText('1 task of its queue comes before it.').waitFor();
    await page.getByText(/It should start in about \d+/).waitFor();
    await page
      .getByText(/1 requests? .*10 min/)
      .first()
      .waitFor();
    await page.getByLabel('Change the priority').selectOption('high');
    await page.getByText('No task of its queue comes before it.').waitFor();
    expect(complaints).toEqual([]);
  });

  it('R-AD6: says why a queue gets nothing done, what its service said and when it is empty', async () => {
    const { page, complaints } = await signedIn();
    const { api } = stand.sluice;
    const queue = 'slow-service';
    await api.putQueue(queue, { limits: { rpm: 60, tpm: 1_000 } });
    const drafts = Array.from({ length: 30 }, () => ({
      taskType: 'elsewhere',
      queue,
      cost: { tokens: 500 },
      dispatchDeadlineSeconds: 60,
    }));
    await api.submitMany(drafts);
    const { workerId } = await api.register({ queues: [queue], taskTypes: ['elsewhere'] });
    const { tasks } = await api.poll(workerId, { availableCapacity: 1, waitMs: 10_000 });
    const error = { code: 'RATE_LIMITED', message: 'You exceeded your quota', retriable: true };
    const usage = { tokens: 5_000 };
    const reports = tasks.map(({ taskId, lease }) => {
      return { taskId, lease, status: 'failed', error, usage } as const;
    });
    await api.report(workerId, reports);
    await open(page, [`#/queues/${queue}`, queue]);
    await page.getByText('You exceeded your quota').waitFor();
    await page.getByText(/Empty at .* if nothing more comes/).waitFor();
    await page
      .getByText(/dispatch deadlines of the next .* will be missed, the first at/)
      .waitFor();
    await page.getByText(/tokens are owed/).waitFor();
    await page.getByRole('region', { name: 'Throughput lost, by cause' }).waitFor();
    await page.getByRole('img', { name: /^Tasks in line/ }).waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    expect(await scrollsSideways(page)).toBe(false);
    await open(page, ['#/queues', 'Queues']);
    await page.getByRole('cell', { name: /-[0-9.,K]+ tokens/ }).waitFor();
    expect(complaints).toEqual([]);
    await api.deregister(workerId);
  });

  it('cancels a task that runs', async () => {
    const { page, complaints } = await signedIn();
    const id = await startLong('embeddings');
    await open(page, [`#/tasks/${id}`, 'long']);
    await page.locator('h1 .badge', { hasText: 'executing' }).waitFor();
    await click(page, 'Cancel');
    await click(page, 'Cancel the task');
    await page.locator('h1 .badge', { hasText: 'cancelled' }).waitFor();
    expect((await stand.sluice.task(id).status()).status).toBe('cancelled');
    expect(complaints).toEqual([]);
  });

  it('hears by an event, also of the other server, that a task ended', async () => {
    const { page } = await signedIn();
    const id = await startLong('embeddings');
    await page.clock.install();
    const following = page.waitForResponse((response) =>
      response.url().includes('/events?task_id='),
    );
    await open(page, [`#/tasks/${id}`, 'long']);
    await following;
    // Its timers stand still: the page asks for nothing by itself.
    await page.clock.pauseAt(Date.now() + 60_000);
    await stand.sluice.task(id).cancel();
    await page.locator('h1 .badge', { hasText: 'cancelled' }).waitFor();
  });

  it('shows big numbers digit by digit, and duplicates a task with edits', async () => {
    const { page } = await signedIn();
    const { id } = await stand.sluice.submit(quick, { name: 'one' }, { queue: 'embeddings' });
    await page.route(`**/tasks/${id}?include=history`, async (route) => {
      const response = await route.fetch();
      const body = (await response.text()).replace('"one"', '"one","id":12345678901234567890');
      await route.fulfill({ response, body });
    });
    await open(page, [`#/tasks/${id}`, 'quick']);
    await page.getByText('12345678901234567890').waitFor();
    await click(page, 'Duplicate …');
    const parameters = page.getByLabel('Parameters (JSON)');
    expect(await parameters.inputValue()).toContain('12345678901234567890');
    await parameters.fill('{"name":"two"}');
    await click(page, 'Submit');
    await page.getByText('"two"').waitFor();
  });

  it('filters tasks by status, queue, type, user and tag', async () => {
    const { page, complaints } = await signedIn();
    await stand.sluice.submit(quick, {}, { queue: 'claude', userId: 'ada', tags: ['nightly'] });
    const rows = page.getByRole('table').getByRole('row');
    const types = async () => (await rows.allTextContents()).slice(1);
    await open(page, ['#/tasks', 'Tasks']);
    await page.getByLabel('Status').selectOption('dead_letter');
    await until('dead letters alone', async () => {
      const shown = await types();
      return shown.length === 3 && shown.every((text) => text.includes('broken'));
    });
    await page.getByLabel('Status').selectOption('');
    for (const [label, value] of [
      ['User', 'ada'],
      ['Tag', 'nightly'],
      ['Queue', 'claude'],
      ['Task type', 'quick'],
    ] as const) {
      const field = page.getByLabel(`${label}, the whole name`);
      await field.fill(value);
      await field.press('Enter');
      await until(`the one of ${value}`, async () => {
        const shown = await types();
        return shown.length >= 1 && shown.every((text) => text.includes('quick'));
      });
    }
    expect(await types()).toHaveLength(1);
    expect(await page.evaluate<string>('location.hash')).toContain('user_id=ada');
    await page.getByLabel('User, the whole name').fill('nobody');
    await page.getByLabel('User, the whole name').press('Enter');
    await page.getByText('No task matches.').waitFor();
    expect(complaints).toEqual([]);
  });

  it('R-OB4: finds tasks by text, and says how far it looked', async () => {
    const { page, complaints } = await signedIn();
    const options = { queue: 'found', delaySeconds: 3_600, tags: ['found'] };
    const { id } = await stand.sluice.submit(quick, { prompt: 'a needle' }, options);
    await stand.sluice.submit(quick, { prompt: 'hay' }, options);
    await open(page, ['#/tasks?queue=found', 'Tasks']);
    await page.getByRole('button', { name: 'Count the matches' }).click();
    await page.getByText(/^2 matches among all \d+ tasks\.$/).waitFor();
    const text = page.getByPlaceholder('Text in parameters');
    await text.fill('needle');
    await text.press('Enter');
    await page
      .getByRole('row')
      .filter({ hasText: id.slice(-6) })
      .waitFor();
    expect(await page.getByRole('row').count()).toBe(2);
    expect(await page.getByRole('button', { name: /all of them/ }).count()).toBe(0);
    await text.fill('no such text');
    await text.press('Enter');
    await page.getByText('No task matches.').waitFor();
    await page.route('**/api/v1/tasks?*', async (route) => {
      const response = await route.fetch();
      const isNext = route.request().url().includes('cursor=');
      const far = { next_cursor: 'far', searched_back_to: '2026-01-31T12:03:00.000Z' };
      const none = { items: [], next_cursor: null, searched_back_to: null };
      await route.fulfill({
        ...(isNext ? {} : { response }),
        json: isNext ? none : { ...none, ...far },
      });
    });
    await page.reload();
    await page.getByText(/^No match among the tasks submitted since/).waitFor();
    await page.getByText(/^Looked back to/).waitFor();
    await page.getByRole('button', { name: 'Search further' }).click();
    await page.getByText('No task matches.').waitFor();
    await page.unroute('**/api/v1/tasks?*');
    await page.getByPlaceholder('Task id').last().fill(id);
    await page.getByPlaceholder('Task id').last().press('Enter');
    await page.getByRole('heading', { name: 'quick', level: 1 }).waitFor();
    expect(complaints).toEqual([]);
  });

  it('R-OB4: re-prioritises, cancels and replays all tasks of a filter, with a count before', async () => {
    const { page, complaints } = await signedIn();
    await stand.sluice.submitMany(
      quick,
      Array.from({ length: 12 }, (_, n) => ({
        input: { n },
        options: { queue: 'in-bulk', delaySeconds: 3_600 },
      })),
    );
    const dialog = page.getByRole('dialog');
    const close = dialog.getByRole('button', { name: 'Close', exact: true }).last();
    const countOf = async (filter: object) =>
      (await stand.sluice.api.countTasks({ queue: 'in-bulk', ...filter })).count;
    await open(page, ['#/tasks?queue=in-bulk', 'Tasks']);
    await page.getByRole('button', { name: 'Change their priority …' }).click();
    await dialog.getByText('12 tasks.').waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Change 12' }).click();
    await dialog.getByText('12 tasks changed.').waitFor();
    await close.click();
    const { items } = await stand.sluice.api.listTasks({ queue: 'in-bulk' });
    expect(new Set(items.map(({ priority }) => priority))).toEqual(new Set(['high']));

    // In steps of five, of which the second waits until the stop was pressed.
    let steps = 0;
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    await page.route('**/api/v1/tasks/cancel', async (route) => {
      steps += 1;
      if (steps === 2) await held;
      const body = route.request().postDataJSON() as object;
      await route.continue({ postData: JSON.stringify({ ...body, limit: 5 }) });
    });
    await page.getByRole('button', { name: 'Cancel all of them …' }).click();
    const begin = dialog.getByRole('button', { name: 'Cancel 12' });
    await begin.waitFor();
    expect(await begin.isDisabled()).toBe(true);
    await dialog.getByLabel('Type cancel 12 to confirm').fill('cancel 12');
    await begin.click();
    await dialog.getByText('5 of 12 cancelled …').waitFor();
    expect(await dialog.getByRole('progressbar').getAttribute('value')).toBe('5');
    await dialog.getByRole('button', { name: 'Stop' }).click();
    release();
    await dialog.getByText('Stopped: 10 of 12 cancelled. The others are as they were.').waitFor();
    expect(await countOf({ status: 'cancelled' })).toBe(10);
    await dialog.getByRole('button', { name: 'Go on' }).click();
    await dialog.getByText('12 tasks cancelled.').waitFor();
    await close.click();
    expect(await countOf({ status: 'cancelled' })).toBe(12);

    await page.getByLabel('Status').selectOption('cancelled');
    await page.getByRole('button', { name: 'Replay all of them …' }).click();
    await dialog.getByRole('button', { name: 'Replay 12' }).click();
    await dialog.getByText('12 tasks replayed.').waitFor();
    expect(await countOf({ status: 'cancelled' })).toBe(0);
    expect(complaints).toEqual([]);
  });

  it('replays a pattern of dead letters', async () => {
    const { page, complaints } = await signedIn();
    await open(page, ['#/dead-letters', 'Dead letters']);
    await page.getByText('no such model').first().waitFor();
    mend();
    const pattern = page.getByRole('row', { name: /NON_RETRIABLE/ }).first();
    await pattern.getByRole('button', { name: 'Replay …' }).click();
    await click(page, 'Replay 3');
    await page.getByText('3 tasks replayed.').waitFor();
    await page.getByRole('button', { name: 'Close', exact: true }).last().click();
    await page.getByText('There are no dead letters.').waitFor();
    await until('all to be completed', async () => {
      const { items } = await stand.sluice.api.listTasks({ taskType: 'broken' });
      return items.every(({ status }) => status === 'completed');
    });
    expect(complaints).toEqual([]);
  });

  it('shows that an alert fires, and silences it', async () => {
    const { page, complaints } = await signedIn();
    await stand.sluice.queue('deep').pause();
    await stand.sluice.submitMany(
      quick,
      Array.from({ length: 4 }, () => ({ input: {}, options: { queue: 'deep' } })),
    );
    await stand.sluice.api.putAlert('queue_depth', { threshold: 3, forSeconds: 0 });
    await open(page, ['#/alerts', 'Alerts']);
    const fired = page.getByRole('row', { name: /firing.*queue depth.*deep/i });
    await fired.waitFor();
    await fired.getByRole('button', { name: 'Silence for an hour' }).click();
    await page
      .getByRole('row', { name: /silenced.*queue depth/i })
      .first()
      .getByRole('button', { name: 'End the silence' })
      .click();
    await fired.waitFor();
    await stand.sluice.api.putAlert('queue_depth', { threshold: 1_000_000 });
    await fired.waitFor({ state: 'detached' });
    expect(complaints).toEqual([]);
  });

  it('R-AD6: makes a key, shows it once, and revokes it when its name is typed', async () => {
    const { page, complaints } = await signedIn();
    await open(page, ['#/keys', 'API keys']);
    await click(page, 'New key …');
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('visitor');
    await click(page, 'Make it');
    const key = (await page.locator('.secret').textContent()) ?? '';
    await click(page, 'Done');
    const asks = async () =>
      (await fetch(`${stand.url}/api/v1/queues`, { headers: { authorization: `Bearer ${key}` } }))
        .status;
    expect(await asks()).toBe(200);
    const row = page.getByRole('row', { name: /visitor/ });
    expect(await page.getByText(key).count()).toBe(0);
    await row.getByRole('button', { name: 'Revoke …' }).click();
    const revoke = page.getByRole('button', { name: 'Revoke it' });
    expect(await revoke.isDisabled()).toBe(true);
    await page.getByLabel(/to confirm/).fill('visitor');
    await revoke.click();
    await row.getByText('revoked').waitFor();
    expect(await asks()).toBe(401);
    await open(page, ['#/audit', 'Audit']);
    await page
      .getByRole('row', { name: /admin.*key revoke/ })
      .first()
      .waitFor();
    await page
      .getByRole('row', { name: /admin.*key create.*visitor/ })
      .first()
      .waitFor();
    expect(complaints).toEqual([]);
  });

  it('says that the server is away, and goes on with the one that takes its place', async () => {
    const { page } = await signedIn();
    const lost = page.getByText('The connection to the server is lost.');
    await open(page, ['#/queues', 'Queues']);
    await stand.restart(async () => {
      await lost.waitFor();
      await stand.sluice.submit(quick, {}, { queue: 'after-the-restart' });
    });
    await lost.waitFor({ state: 'detached' });
    // Still signed in.
    await open(page, ['#/queues/after-the-restart', 'after-the-restart']);
    await seeTile(page, 'Waiting', /^0$/);
  });
});

describe('R-AD6: a key sees only what it may', () => {
  const steering = /Pause|Resume|Settings|Replay|Drain|Silence|all of them|priority/;
  const ofSubmitters = /^(Cancel|Duplicate …)$/;

  async function offers(page: Page, name: RegExp): Promise<string[]> {
    const found: string[] = [];
    for (const place of readable) {
      await open(page, place);
      found.push(...(await page.getByRole('button', { name }).allTextContents()));
    }
    return found;
  }

  async function linksOf(page: Page): Promise<string[]> {
    return page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allTextContents();
  }

  it('read: no action, and the server refuses them', async () => {
    const { page, complaints } = await signedIn('reader');
    expect(await offers(page, steering)).toEqual([]);
    expect(await linksOf(page)).toEqual(expect.not.arrayContaining(['API keys', 'Audit']));
    const id = await startLong('of-readers');
    await open(page, [`#/tasks/${id}`, 'long']);
    expect(await page.getByRole('button', { name: ofSubmitters }).count()).toBe(0);
    await stand.sluice.task(id).cancel();
    expect(complaints).toEqual([]);
    const statuses = await page.evaluate(async () => {
      const calls = [
        ['POST', 'queues/gpt-4o/pause'],
        ['PATCH', 'queues/gpt-4o'],
        ['POST', 'dlq/replay'],
        ['POST', 'tasks/cancel'],
        ['POST', 'tasks/replay'],
        ['POST', 'tasks/reprioritise'],
        ['POST', 'tasks'],
      ] as const;
      const headers = { 'content-type': 'application/json' };
      const answers = calls.map(([method, path]) =>
        fetch(`/api/v1/${path}`, { method, headers, body: '{}' }),
      );
      return (await Promise.all(answers)).map(({ status }) => status);
    });
    expect(statuses).toEqual([403, 403, 403, 403, 403, 403, 403]);
  });

  it('read and submit: single tasks, and nothing else', async () => {
    const { page, complaints } = await signedIn('submitter');
    expect(await offers(page, steering)).toEqual([]);
    const id = await startLong('of-submitters');
    await open(page, [`#/tasks/${id}`, 'long']);
    await page.getByRole('button', { name: 'Duplicate …' }).waitFor();
    await click(page, 'Cancel');
    await click(page, 'Cancel the task');
    await page.locator('h1 .badge', { hasText: 'cancelled' }).waitFor();
    expect(await page.getByRole('button', { name: 'Replay' }).count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  it('submit alone: is told which scope is missing', async () => {
    const { page, complaints } = await signedIn('blind');
    await page.getByText('The key blind has not the scope read.').waitFor();
    expect(complaints).toEqual([]);
  });
});

describe('an installation with nothing in it', () => {
  it('tells on each page what to type next, without a complaint', async () => {
    const database = await createTestDatabase();
    const server = await serve({
      host: '127.0.0.1',
      port: 0,
      database: { kind: 'postgres', url: database.url },
    });
    const { page, complaints } = await visit(browser, server.url);
    const hints: readonly (readonly [...Place, string])[] = [
      ['#/', 'Overview', 'sluice submit hello --queue demo'],
      ['#/queues', 'Queues', 'sluice submit hello --queue demo'],
      ['#/queues/none', '', 'sluice submit hello --queue none'],
      ['#/tasks', 'Tasks', 'sluice submit hello --queue demo'],
      ['#/workers', 'Workers', 'sluice worker --module'],
      ['#/dead-letters', 'Dead letters', 'There are no dead letters.'],
      ['#/keys', 'API keys', 'There is no key'],
      ['#/audit', 'Audit', 'Nothing was changed yet.'],
    ];
    const faults: string[] = [];
    for (const [address, heading, hint] of hints) {
      await page.evaluate(`location.hash = ${JSON.stringify(address)}`);
      if (heading !== '') await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
      await page.getByText(hint).first().waitFor();
      faults.push(...(await seriousFaults(page)));
    }
    // The queue that is not there is asked for.
    const others = complaints.filter((text) => !text.includes('404'));
    expect({ faults, others }).toEqual({ faults: [], others: [] });
    await page.context().close();
    await server.close();
    await database.drop();
  });
});
