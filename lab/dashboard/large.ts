import { spawnSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { open, visit, type Place } from '../../test/dashboard/visit.js';
import { startChromium } from '../../test/support/services/chromium.js';
import { startRedis } from '../../test/support/services/redis-server.js';
import { OneServer } from '../hardening/one-server.js';
import { Flow } from '../numbers/flow.js';
import { seedQueued } from '../numbers/seed.js';
import { LabDatabase } from '../shared/database.js';
import type { Lab } from '../shared/lab.js';
import { median, spreadOf } from '../shared/measure.js';
import {
  count,
  judged,
  ms,
  percent,
  withSpread,
  type Row,
  type Scenario,
} from '../shared/scenario.js';
import { cli } from '../shared/service.js';

const mostAnswerMs = 200;
const mostPaintMs = 300;
const mostCost = 0.03;
const leastFrames = 55;
const tabs = 10;

export const large: Scenario = {
  name: 'large',
  about: '10,000 queues, a million tasks and a flow of tasks, with the ready queue in Redis',
  run: measure,
};

async function measure(lab: Lab): Promise<readonly Row[]> {
  const queues = lab.size(10_000, 100);
  const database = await LabDatabase.create(lab.postgresUrl);
  const redis = await startRedis();
  const browser = await startChromium();
  try {
    spawnSync(process.execPath, [cli, 'migrate', '--database-url', database.url]);
    await seedQueued(database, queues, queues * 100);
    const limits = ['--max-active', String(queues * 1_000)];
    await using server = await OneServer.start([
      ...['--database-url', database.url, '--redis-url', redis.url],
      ...limits,
    ]);
    return await observe(lab, browser, server.url, queues);
  } finally {
    await browser.close();
    await redis.stop();
    await database.drop();
  }
}

async function observe(lab: Lab, browser: Browser, url: string, queues: number): Promise<Row[]> {
  const flow = new Flow(url);
  const rate = lab.number('rate');
  const flowing = flow.run(rate, queues);
  await untilItFlows(flow, rate);
  const { page } = await visit(browser, url, { viewport: { width: 1_280, height: 800 } });
  const rows: Row[] = [];
  lab.progress.say('what the pages ask for');
  const asked = await addressesOf(page, await placesOf(url));
  rows.push(...(await askAll(url, asked, lab.number('seconds') * 1_000)));
  lab.progress.say('first paint, and frames while it scrolls');
  rows.push(await firstPaint(browser, url, lab.size(20, 3)));
  rows.push(await framesWhileScrolling(page, queues));
  await page.context().close();
  lab.progress.say('what ten tabs cost');
  rows.push(await costOfTabs(lab, browser, url, flow));
  flow.end();
  await flowing;
  return rows;
}

async function untilItFlows(flow: Flow, rate: number): Promise<void> {
  const endsMs = performance.now() + 240_000;
  for (let perSecond = 0; perSecond < 0.95 * rate && performance.now() < endsMs;) {
    perSecond = await completedPerSecond(flow, 2);
  }
}

async function completedPerSecond(flow: Flow, seconds: number): Promise<number> {
  const before = flow.counts.completed;
  const beganMs = performance.now();
  await delay(seconds * 1_000);
  return ((flow.counts.completed - before) * 1_000) / (performance.now() - beganMs);
}

async function placesOf(url: string): Promise<readonly Place[]> {
  const answer = await fetch(`${url}/api/v1/tasks?limit=1&status=queued`);
  const { items } = (await answer.json()) as { items: { task_id: string; task_type: string }[] };
  const [task] = items;
  return [
    ['#/', 'Overview'],
    ['#/queues', 'Queues'],
    ['#/queues/queue-1', 'queue-1'],
    ['#/tasks', 'Tasks'],
    ['#/tasks?status=queued&queue=queue-1', 'Tasks'],
    ...(task === undefined ? [] : [[`#/tasks/${task.task_id}`, task.task_type] as const]),
    ['#/workers', 'Workers'],
    ['#/dead-letters', 'Dead letters'],
    ['#/alerts', 'Alerts'],
    ['#/keys', 'API keys'],
    ['#/audit', 'Audit'],
  ];
}

/** As the pages ask them, times and cursors included; an event stream does not end. */
async function addressesOf(page: Page, places: readonly Place[]): Promise<readonly string[]> {
  const found = new Map<string, string>();
  page.on('request', (request) => {
    const { pathname, search, searchParams } = new URL(request.url());
    if (!pathname.startsWith('/api/') || pathname.endsWith('/events')) return;
    // Of the lines of all queues in sight one is enough.
    const shape = [...searchParams.keys()].map((name) =>
      ['from', 'cursor', 'queue'].includes(name) ? name : `${name}=${searchParams.get(name)}`,
    );
    found.set(`${pathname} ${shape.join(' ')}`, `${pathname}${search}`);
  });
  await page.reload();
  for (const place of places) {
    await open(page, place);
    await delay(1_000);
  }
  return [...found.values()];
}

/** One after the other, as one person who opens all pages would, again and again. */
async function askAll(url: string, addresses: readonly string[], forMs: number): Promise<Row[]> {
  const tookMs = new Map(addresses.map((address) => [address, [] as number[]]));
  const endsMs = performance.now() + forMs;
  do {
    for (const address of addresses) {
      const beganMs = performance.now();
      const answer = await fetch(`${url}${address}`);
      await answer.arrayBuffer();
      if (!answer.ok) throw new Error(`${address} was answered ${String(answer.status)}`);
      tookMs.get(address)?.push(performance.now() - beganMs);
    }
  } while (performance.now() < endsMs);
  const rows = [...tookMs].map(([address, took]) => {
    const { median: p50, p99, most } = spreadOf(took);
    return { address, p50, p99, most, asked: took.length };
  });
  const slowest = rows.toSorted((one, other) => other.p99 - one.p99);
  return slowest.map(({ address, ...numbers }) => {
    const { p50, p99, most } = numbers;
    const row = {
      what: `${shortened(address)}: p50, p99, slowest of ${count(numbers.asked)}`,
      measured: [p50, p99, most].map(ms).join(', '),
      numbers,
    };
    return judged(row, `p99 < ${ms(mostAnswerMs)}`, p99 < mostAnswerMs);
  });
}

function shortened(address: string): string {
  const text = decodeURIComponent(address.replace('/api/v1/', '')).replace(/from=[^&]+/, 'from=…');
  return text.length > 70 ? `${text.slice(0, 70)}…` : text;
}

/** Of a page that a browser opens for the first time: nothing of it is cached. */
async function firstPaint(browser: Browser, url: string, times: number): Promise<Row> {
  const tookMs: number[] = [];
  for (let time = 0; time < times; time += 1) {
    const { page } = await visit(browser, url);
    const paint = `new Promise((resolve) => new PerformanceObserver((list) => resolve(list.getEntries()[0].startTime))
      .observe({ type: 'paint', buffered: true }))`;
    tookMs.push(await page.evaluate<number>(paint));
    await page.context().close();
  }
  const middle = median(tookMs);
  return judged(
    {
      what: `first paint on loopback, of ${count(times)}`,
      measured: withSpread(tookMs, ms),
      numbers: { tookMs },
    },
    `< ${ms(mostPaintMs)}`,
    middle < mostPaintMs,
  );
}

/** From the top of the list of queues on, 25 pixels a frame, for five seconds. */
async function framesWhileScrolling(page: Page, queues: number): Promise<Row> {
  await open(page, ['#/queues', 'Queues']);
  await page
    .getByText(new RegExp(`${count(queues)} queues`))
    .first()
    .waitFor({ timeout: 60_000 });
  const gaps = await page.evaluate<number[]>(`new Promise((resolve) => {
    const gaps = [];
    let last = performance.now();
    const endsMs = last + 5000;
    const frame = (now) => {
      gaps.push(now - last);
      last = now;
      window.scrollBy(0, 25);
      if (now < endsMs) requestAnimationFrame(frame);
      else resolve(gaps.slice(1));
    };
    requestAnimationFrame(frame);
  })`);
  const perSecond = (gaps.length * 1_000) / gaps.reduce((sum, gap) => sum + gap, 0);
  const { median: p50, p99, most } = spreadOf(gaps);
  return judged(
    {
      what: 'frames a second while the list of queues scrolls; a frame p50, p99, slowest',
      measured: `${perSecond.toFixed(1)}; ${[p50, p99, most].map(ms).join(', ')}`,
      numbers: { perSecond, gaps },
    },
    `≥ ${String(leastFrames)}`,
    perSecond >= leastFrames,
  );
}

/** Each round with ten tabs and without: what disturbs the machine disturbs both. */
async function costOfTabs(lab: Lab, browser: Browser, url: string, flow: Flow): Promise<Row> {
  const seconds = lab.number('round-seconds');
  const ratios: number[] = [];
  const withTabs: number[] = [];
  const without: number[] = [];
  for (let round = 0; round < lab.number('rounds'); round += 1) {
    const measureWith = async () => {
      const closeAll = await openTabs(browser, url);
      withTabs.push(await completedPerSecond(flow, seconds));
      await closeAll();
    };
    const measureWithout = async () => {
      without.push(await completedPerSecond(flow, seconds));
    };
    const order = round % 2 === 0 ? [measureWith, measureWithout] : [measureWithout, measureWith];
    for (const half of order) {
      await half();
      await delay(500);
    }
    ratios.push((withTabs.at(-1) ?? 0) / (without.at(-1) ?? 1));
  }
  const lost = 1 - median(ratios);
  return judged(
    {
      what: `what ${String(tabs)} tabs cost the flow, of ${String(ratios.length)} rounds; tasks a second with and without`,
      measured: `${withSpread(
        ratios.map((ratio) => 1 - ratio),
        percent,
      )}; ${count(median(withTabs))}, ${count(median(without))}`,
      numbers: { ratios, withTabs, without },
    },
    `< ${percent(mostCost, 0)}`,
    lost < mostCost,
  );
}

/** All in sight, each in a window of its own: a tab that nobody sees asks for nothing. */
async function openTabs(browser: Browser, url: string): Promise<() => Promise<void>> {
  const places: readonly Place[] = [
    ['#/', 'Overview'],
    ['#/queues', 'Queues'],
    ['#/queues/queue-1', 'queue-1'],
    ['#/tasks', 'Tasks'],
    ['#/dead-letters', 'Dead letters'],
  ];
  const opened = await Promise.all(
    Array.from({ length: tabs }, async (_, index) => {
      const { page } = await visit(browser, url);
      await open(page, places[index % places.length] ?? ['#/', 'Overview']);
      return page;
    }),
  );
  return async () => {
    await Promise.all(opened.map((page) => page.context().close()));
  };
}
