// Pictures of every page, light and dark, wide and on a phone, of a filled demo: npm run screenshots [-- --docs]
import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { open, signIn, visit, type Place } from '../../test/dashboard/visit.js';
import { startChromium } from '../../test/support/services/chromium.js';
import { runProgram } from '../../test/support/services/run-program.js';
import { until } from '../../test/support/until.js';
import { openFilledDemo, type FilledDemo } from './filled-demo.js';

const { values } = parseArgs({
  options: {
    into: { type: 'string', default: 'lab/results/screenshots' },
    docs: { type: 'boolean', default: false },
  },
});

interface Look {
  readonly name: string;
  readonly options: BrowserContextOptions;
}

const wide = { width: 1_280, height: 860 };
const phone = { width: 390, height: 844 };
const looks: readonly Look[] = [
  { name: 'light', options: { colorScheme: 'light', viewport: wide } },
  { name: 'dark', options: { colorScheme: 'dark', viewport: wide } },
  { name: 'phone-light', options: { colorScheme: 'light', viewport: phone } },
  { name: 'phone-dark', options: { colorScheme: 'dark', viewport: phone } },
];

const folder = values.docs ? 'docs/dashboard' : values.into;
mkdirSync(folder, { recursive: true });
const demo = await openFilledDemo();
const browser = await startChromium();
try {
  await untilItLives(demo);
  for (const look of looks) await takeAll(browser, demo, look);
} finally {
  await browser.close();
  await demo.close();
}
squeeze();
const bytes = readdirSync(folder)
  .map((file) => statSync(join(folder, file)).size)
  .reduce((sum, size) => sum + size, 0);
console.log(`${readdirSync(folder).length} files, ${Math.round(bytes / 1_024)} kB, in ${folder}`);
process.exit(0);

/** 256 colours are enough for a page, and take a third of the room. */
function squeeze(): void {
  const files = readdirSync(folder).map((file) => join(folder, file));
  const args = ['--force', '--ext', '.png', '--quality', '60-95', '--speed', '1', '--strip'];
  const pngquant = { program: 'pngquant', debianPackage: 'pngquant' };
  const { ok, output } = runProgram(pngquant, [...args, ...files]);
  if (!ok) throw new Error(output);
}

/** Some work is done, some has failed, and an alert fires. */
async function untilItLives({ sluice }: FilledDemo): Promise<void> {
  await until('dead letters', async () => (await sluice.api.listDeadLetters({})).totalCount >= 10);
  await until('completed tasks', async () => {
    return (await sluice.api.listTasks({ status: 'completed' })).items.length > 40;
  });
  await until('an alert', async () => {
    const { items } = await sluice.api.listAlerts({});
    return items.some(({ state }) => state === 'firing');
  });
}

async function placesOf({ sluice }: FilledDemo): Promise<readonly (readonly [string, Place])[]> {
  const idOf = async (filter: Parameters<typeof sluice.api.listTasks>[0]) =>
    (await sluice.api.listTasks(filter)).items[0]?.taskId ?? '';
  const task = (id: string, heading: string): Place => [`#/tasks/${id}`, heading];
  return [
    ['overview', ['#/', 'Overview']],
    ['queues', ['#/queues', 'Queues']],
    ['queue', ['#/queues/gpt-4o', 'gpt-4o']],
    ['tasks', ['#/tasks', 'Tasks']],
    ['task-waiting', task(await idOf({ status: 'queued', queue: 'gpt-4o' }), 'model-call')],
    ['task-dead', task(await idOf({ status: 'dead_letter' }), 'parse-invoice')],
    ['workers', ['#/workers', 'Workers']],
    ['dead-letters', ['#/dead-letters', 'Dead letters']],
    ['alerts', ['#/alerts', 'Alerts']],
    ['keys', ['#/keys', 'API keys']],
    ['audit', ['#/audit', 'Audit']],
  ];
}

async function takeAll(chromium: Browser, shown: FilledDemo, look: Look): Promise<void> {
  const door = await visit(chromium, shown.url, look.options);
  await take(door.page, `sign-in-${look.name}`);
  await door.page.context().close();
  const { page } = await signIn(chromium, shown.url, shown.adminKey, look.options);
  for (const [name, place] of await placesOf(shown)) {
    await open(page, place);
    await page.waitForLoadState('networkidle', { timeout: 3_000 }).catch(() => undefined);
    await take(page, `${name}-${look.name}`);
  }
  await open(page, ['#/queues/gpt-4o', 'gpt-4o']);
  await page.getByRole('button', { name: 'Settings …' }).click();
  await page.getByRole('dialog').waitFor();
  await page.screenshot({
    path: join(folder, `settings-${look.name}.png`),
    animations: 'disabled',
  });
  await page.context().close();
}

/** On a phone the whole page, as far as three screens. */
async function take(page: Page, name: string): Promise<void> {
  const viewport = page.viewportSize() ?? wide;
  const pageHeight = await page.evaluate<number>('document.documentElement.scrollHeight');
  const height = Math.min(pageHeight, viewport.height * (viewport.width < 600 ? 3 : 1.6));
  await page.screenshot({
    path: join(folder, `${name}.png`),
    fullPage: true,
    clip: { x: 0, y: 0, width: viewport.width, height: Math.max(height, 300) },
    animations: 'disabled',
  });
}
