import { useState } from 'preact/hooks';
import { explain, get } from './http.js';
import { tell } from './notices.js';
import { usePolled, type Pace } from './polled.js';

interface PageOf<Item> {
  readonly items: readonly Item[];
  readonly next_cursor: string | null;
}

export interface Paged<Item, Page> {
  /** The first page, which may say more than its items; null: it is not there yet. */
  readonly first: Page | null;
  /** Of all pages that were asked for. */
  readonly items: readonly Item[];
  readonly error: unknown;
  /** Null: these are all. */
  readonly showMore: (() => void) | null;
  readonly reload: () => void;
}

/** A list whose first page is kept up to date; the pages behind it come when somebody asks for them. */
export function usePages<Item, Page extends PageOf<Item> = PageOf<Item>>(
  path: string,
  keyOf: (item: Item) => string,
  pace: Pace,
): Paged<Item, Page> {
  const { data: first, error, reload } = usePolled<Page>(path, pace);
  const [more, setMore] = useState<{ path: string; pages: readonly Page[] }>({ path, pages: [] });
  const later = more.path === path ? more.pages : [];
  const pages = first === null ? [] : [first, ...later];
  const cursor = pages.at(-1)?.next_cursor ?? null;
  const load = async (from: string) => {
    const sign = path.includes('?') ? '&' : '?';
    const next = await get<Page>(`${path}${sign}cursor=${encodeURIComponent(from)}`);
    setMore({ path, pages: [...later, next] });
  };
  return {
    first,
    // What is new on the first page has pushed others to the page behind it.
    items: [
      ...new Map(pages.flatMap(({ items }) => items).map((item) => [keyOf(item), item])).values(),
    ],
    error,
    showMore:
      cursor === null
        ? null
        : () => void load(cursor).catch((failure: unknown) => tell('bad', explain(failure))),
    reload,
  };
}
