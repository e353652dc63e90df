import axe from 'axe-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';

export interface Visit {
  readonly page: Page;
  /** What the browser complained about. */
  readonly complaints: string[];
}

export async function visit(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const context = await browser.newContext(options);
  // A page asks less often while answers take long: on a busy machine it may show a change after a minute.
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(`${message.text()} ${message.location().url}`);
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(url);
  return { page, complaints };
}

/** The key is typed in, as a person would. */
export async function signIn(
  browser: Browser,
  url: string,
  key: string,
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const visited = await visit(browser, url, options);
  await visited.page.getByLabel('API key').fill(key);
  await visited.page.getByRole('button', { name: 'Sign in' }).click();
  await visited.page.getByRole('banner').waitFor();
  return visited;
}

/** A page by its address and the heading that it shows. */
export type Place = readonly [address: string, heading: string];

/** Resolves when it shows its data. */
export async function open(page: Page, [address, heading]: Place): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(address)}`);
  const title = page.getByRole('heading', { name: heading, level: 1 });
  await title.waitFor().catch(async (cause: unknown) => {
    const shown = await page.locator('main').innerText();
    throw new Error(`${address} shows: ${shown.slice(0, 500)}`, { cause });
  });
  await page.locator('.loading').first().waitFor({ state: 'detached' });
}

/** With their places: a message without them says nothing. */
export async function seriousFaults(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<axe.AxeResults>('axe.run()');
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`);
}

/** As text: it runs in the browser, of which this program has no types. */
export async function scrollsSideways(page: Page): Promise<boolean> {
  return page.evaluate<boolean>(
    'document.documentElement.scrollWidth > document.documentElement.clientWidth',
  );
}
