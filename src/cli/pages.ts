import type { Page, PageRequest } from '../protocol/page.js';

export async function everyPage<Item>(
  list: (page: PageRequest) => Promise<Page<Item>>,
): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<Item> = await list(cursor === null ? {} : { cursor });
    items.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return items;
}
