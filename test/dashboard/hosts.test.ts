import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import {
  createDashboard,
  type DashboardOptions,
  type FetchHandler,
  type Mountable,
  type Role,
} from '../../src/server/dashboard/index.js';
import { MountedApp } from '../../src/server/dashboard/mounted-app.js';
import { startChromium } from '../support/services/chromium.js';
import { until } from '../support/until.js';
import { actions, callFor, isApiRoute, nameOf, type Call } from './actions.js';
import { basePath, hosts } from './hosts.js';
import { openMountedStand, type MountedStand } from './mounted-stand.js';
import { open, visit, type Place } from './visit.js';

let stand: MountedStand;
beforeAll(async () => {
  stand = await openMountedStand();
});
afterAll(async () => {
  await (await started)?.close();
  await stand.close();
});

let started: Promise<Browser> | null = null;

function browser(): Promise<Browser> {
  started ??= startChromium();
  return started;
}

function mount(authorize: DashboardOptions['authorize'], mountable = stand.mountable) {
  return createDashboard(mountable, { basePath, authorize });
}

async function start(host: string, dashboard: FetchHandler): Promise<string> {
  const running = await hosts[host]?.(dashboard);
  if (running === undefined) throw new Error(`There is no host ${host}`);
  onTestFinished(() => running.close());
  return running.url;
}

/** As the page of the same origin sends it. */
function requestOf(origin: string, { method, path, body }: Call): Request {
  const url = new URL(origin);
  return new Request(`${origin}${basePath}${path}`, {
    method,
    headers: {
      host: url.host,
      'sec-fetch-site': 'same-origin',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

/** A stream of events is let go: it would not end. */
async function statusOf(answer: Promise<Response>): Promise<number> {
  const { status, body } = await answer;
  await body?.cancel();
  return status;
}

describe('every action of the dashboard', () => {
  it('is in the table of this test, and nothing else is', async () => {
    const { app } = new MountedApp(stand.mountable.api, null);
    await app.ready();
    const routes = app.scopedRoutes();
    expect(Object.keys(actions).toSorted()).toEqual(
      routes.filter(isApiRoute).map(nameOf).toSorted(),
    );
    const dashboard = mount(() => 'admin');
    const others = routes.filter((route) => !isApiRoute(route) && route.path !== '/');
    const found = others.filter(
      ({ method, path }) => !path.startsWith('/api/') && method !== 'HEAD',
    );
    expect(found.length).toBeGreaterThan(10);
    for (const route of found) {
      const call = requestOf('https://app.example', route);
      expect([nameOf(route), await statusOf(dashboard(call))]).toEqual([nameOf(route), 404]);
    }
  });

  it.each([null, 'read', 'operator', 'admin'] as const)(
    'R-AD6: is allowed to %s exactly as the table says',
    async (role) => {
      const order: readonly (Role | null)[] = [null, 'read', 'operator', 'admin'];
      const dashboard = mount(() => role);
      const expected: Record<string, number | string> = {};
      const found: Record<string, number | string> = {};
      for (const [name, { least }] of Object.entries(actions)) {
        const isAllowed = order.indexOf(role) >= order.indexOf(least);
        const refusal = role === null ? 401 : 403;
        const call = await callFor(name, stand);
        const status = await statusOf(dashboard(requestOf('https://app.example', call)));
        expected[name] = isAllowed ? 'done' : refusal;
        found[name] = status < 300 ? 'done' : status;
      }
      expect(found).toEqual(expected);
    },
  );
});

describe.each(Object.keys(hosts))('a dashboard in %s', (host) => {
  it('has its page and all that the page loads, with and without a slash', async () => {
    const url = await start(
      host,
      mount(() => 'admin'),
    );
    for (const path of [basePath, `${basePath}/`]) {
      const page = await fetch(`${url}${path}`);
      expect([page.status, page.headers.get('content-type')]).toEqual([
        200,
        'text/html; charset=utf-8',
      ]);
      const loaded = [...(await page.text()).matchAll(/(?:src|href)="(\.\/[^"]+)"/g)];
      expect(loaded).toHaveLength(2);
      for (const [, address = ''] of loaded) {
        // A browser resolves it against the address that a redirect led to.
        const asset = await fetch(new URL(address, page.url));
        expect([asset.status, asset.headers.get('content-encoding')]).toEqual([200, 'gzip']);
        expect(asset.headers.get('content-type')).toMatch(/^text\/(css|javascript)/);
        expect((await asset.text()).length).toBeGreaterThan(1_000);
      }
    }
    expect((await fetch(`${url}/admin/other`)).status).toBe(404);
  });

  it('R-AD6: does every action', async () => {
    const url = await start(
      host,
      mount(() => ({ role: 'admin', name: 'Ada' })),
    );
    const refused: string[] = [];
    for (const name of Object.keys(actions)) {
      const call = await callFor(name, stand);
      const answer = await fetch(requestOf(url, call));
      const text = answer.ok ? '' : await answer.text();
      await (answer.ok ? answer.body?.cancel() : undefined);
      if (!answer.ok) refused.push(`${name}: ${answer.status} ${text}`);
    }
    expect(refused).toEqual([]);
  });

  it('R-AD6: asks who it is for each request', async () => {
    const url = await start(
      host,
      mount((request) => (request.headers.get('x-role') === 'read' ? 'read' : null)),
    );
    const pause = requestOf(url, {
      method: 'POST',
      path: '/api/v1/queues/mounted/pause',
      body: {},
    });
    expect((await fetch(`${url}${basePath}`)).status).toBe(401);
    expect((await fetch(`${url}${basePath}`, { headers: { 'x-role': 'read' } })).status).toBe(200);
    expect((await fetch(pause.clone())).status).toBe(401);
    pause.headers.set('x-role', 'read');
    expect((await fetch(pause)).status).toBe(403);
  });

  it('follows events until the reader leaves', async () => {
    const followed = countFollowers(stand.mountable);
    const url = await start(
      host,
      mount(() => 'read', followed.mountable),
    );
    const leaving = new AbortController();
    const stream = await fetch(`${url}${basePath}/api/v1/events?queue=mounted`, {
      signal: leaving.signal,
    });
    expect(stream.headers.get('content-type')).toContain('text/event-stream');
    let heard = '';
    const reading = (async () => {
      const decoder = new TextDecoder();
      for await (const chunk of stream.body ?? []) heard += decoder.decode(chunk as Uint8Array);
    })().catch(() => undefined);
    const taskId = await stand.taskId();
    await until('the event to be heard', () => heard.includes(taskId));
    expect(followed.count()).toBe(1);
    leaving.abort();
    await reading;
    await until('the follower to be let go', () => followed.count() === 0);
  });
});

describe('a dashboard in an app, in a browser', () => {
  const places: readonly Place[] = [
    ['#/', 'Overview'],
    ['#/queues', 'Queues'],
    ['#/queues/mounted', 'mounted'],
    ['#/tasks', 'Tasks'],
    ['#/workers', 'Workers'],
    ['#/dead-letters', 'Dead letters'],
    ['#/alerts', 'Alerts'],
    ['#/keys', 'API keys'],
    ['#/audit', 'Audit'],
  ];

  it('has every page and does what it is told, for an admin', async () => {
    const url = await start(
      'express',
      mount(() => ({ role: 'admin', name: 'Ada' })),
    );
    const { page, complaints } = await visit(await browser(), `${url}${basePath}`);
    for (const place of places) await open(page, place);
    await open(page, ['#/queues/mounted', 'mounted']);
    await page.getByRole('button', { name: 'Pause …' }).click();
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await page.locator('h1 .badge', { hasText: 'paused' }).waitFor();
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByRole('button', { name: 'Pause …' }).waitFor();
    await open(page, ['#/audit', 'Audit']);
    await page.getByText('Ada').first().waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('R-AD6: an operator steers and changes no setting', async () => {
    const url = await start(
      'express',
      mount(() => 'operator'),
    );
    const { page, complaints } = await visit(await browser(), `${url}${basePath}/`);
    await open(page, ['#/queues/mounted', 'mounted']);
    await page.getByRole('button', { name: 'Pause …' }).waitFor();
    const offered = (name: string | RegExp) => page.getByRole('button', { name }).count();
    expect(await offered('Settings …')).toBe(0);
    const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link');
    expect(await links.allTextContents()).toEqual(
      expect.not.arrayContaining(['API keys', 'Audit']),
    );
    await open(page, [`#/tasks/${await stand.taskId()}`, 'waits']);
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('button', { name: 'Cancel the task' }).click();
    await page.locator('h1 .badge', { hasText: 'cancelled' }).waitFor();
    await page.getByRole('button', { name: 'Replay', exact: true }).click();
    await page.locator('h1 .badge', { hasText: /queued|pending/ }).waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});

function countFollowers({ api, events }: Mountable) {
  let count = 0;
  const follow: NonNullable<Mountable['events']>['follow'] = (follower) => {
    count += 1;
    const following = events?.follow(follower);
    return {
      changed: () => following?.changed(),
      stop: () => {
        count -= 1;
        following?.stop();
      },
    };
  };
  return { mountable: { api, events: { follow } }, count: () => count };
}
