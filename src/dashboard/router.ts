import { href } from './href.js';
import { Store } from './store.js';

/** The part of the address behind `#`: pages need no routes of the server. */
export interface Route {
  /** Decoded: `['queues', 'gpt-4o']`. */
  readonly segments: readonly string[];
  readonly search: URLSearchParams;
}

export const route = new Store<Route>(parseRoute(location.hash));

export function watchRoute(): void {
  window.addEventListener('hashchange', () => {
    route.set(parseRoute(location.hash));
    window.scrollTo(0, 0);
  });
}

function parseRoute(hash: string): Route {
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const segments = path.split('/').filter((segment) => segment !== '');
  return { segments: segments.map(decode), search: new URLSearchParams(search) };
}

export function go(address: string): void {
  location.hash = address;
}

/** Changes what stands behind `?`, without a step in the history. */
export function setSearch(changes: Readonly<Record<string, string>>): void {
  const { segments, search } = route.get();
  const next = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  history.replaceState(null, '', `${href(...segments)}${text === '' ? '' : `?${text}`}`);
  route.set({ segments, search: next });
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
