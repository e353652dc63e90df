/** What an API key may be good for; `admin` includes all others. */
export const scopes = ['submit', 'read', 'worker', 'admin'] as const;
export type Scope = (typeof scopes)[number];

/** What a route asks of its caller; `open` asks nothing. */
export type RouteScope = Scope | 'open';

export function allows(granted: readonly Scope[], needed: RouteScope): boolean {
  return needed === 'open' || granted.includes(needed) || granted.includes('admin');
}

export function isScope(text: string): text is Scope {
  return scopes.some((scope) => scope === text);
}
