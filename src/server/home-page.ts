import { allows, scopes, type Scope } from '../domain/scopes.js';
import { escapeHtml, page } from './html.js';

/** Who looks at it: anybody on this machine, somebody who has to sign in, or somebody who did. */
export type Visitor =
  | { readonly kind: 'anybody' }
  | { readonly kind: 'stranger'; readonly refusal?: string }
  | { readonly kind: 'signed in'; readonly name: string; readonly scopes: readonly Scope[] };

const links: readonly (readonly [address: string, name: string, needed: Scope | 'open'])[] = [
  ['/docs', 'HTTP API', 'open'],
  ['/api/v1/queue/stats', 'Statistics', 'read'],
  ['/api/v1/queues', 'Queues', 'read'],
  ['/api/v1/workers', 'Workers', 'read'],
  ['/api/v1/dlq', 'Dead letters', 'read'],
  ['/api/v1/keys', 'API keys', 'admin'],
  ['/metrics', 'Metrics', 'read'],
  ['/openapi.json', 'OpenAPI', 'open'],
];

export function renderHomePage(visitor: Visitor): string {
  return page(
    'Sluice',
    `<h1>Sluice</h1>
<p class="dim">A durable task queue for work that calls slow, rate-limited services.</p>
${greeting(visitor)}
<nav>
${links.map(([address, name, needed]) => link(address, name, needed, visitor)).join('\n')}
</nav>`,
  );
}

function link(address: string, name: string, needed: Scope | 'open', visitor: Visitor): string {
  const granted = grantedTo(visitor);
  return allows(granted, needed)
    ? `<a href="${address}">${name}</a>`
    : `<span class="dim">${name} (needs the scope ${needed})</span>`;
}

function grantedTo(visitor: Visitor): readonly Scope[] {
  if (visitor.kind === 'anybody') return ['admin'];
  return visitor.kind === 'signed in' ? visitor.scopes : [];
}

function greeting(visitor: Visitor): string {
  switch (visitor.kind) {
    case 'anybody':
      return '';
    case 'stranger':
      return signInForm(visitor.refusal);
    case 'signed in':
      return signedIn(visitor.name, visitor.scopes);
  }
}

function signInForm(refusal: string | undefined): string {
  const told = refusal === undefined ? '' : `<p role="alert">${escapeHtml(refusal)}</p>\n`;
  return `<form method="post" action="/sign-in">
${told}<p><label for="key">API key</label></p>
<p><input id="key" name="key" type="password" autocomplete="current-password" required autofocus size="60"></p>
<p><button>Sign in</button></p>
</form>`;
}

function signedIn(name: string, granted: readonly Scope[]): string {
  const lacking = scopes.filter((scope) => !allows(granted, scope));
  const without = lacking.length === 0 ? '' : `, not ${lacking.join(', ')}`;
  return `<form method="post" action="/sign-out">
<p>Signed in with the key ${escapeHtml(name)}: it may ${granted.join(', ')}${without}.
<button>Sign out</button></p>
</form>`;
}
