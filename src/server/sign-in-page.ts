import { escapeHtml, page } from './html.js';

/** For those who have no session yet. Its addresses are relative: it works behind a proxy that shortens the path. */
export function renderSignInPage(refusal?: string): string {
  const told = refusal === undefined ? '' : `<p role="alert">${escapeHtml(refusal)}</p>\n`;
  return page(
    'Sign in to Sluice',
    `<main class="door">
<h1>Sluice</h1>
<form method="post" action="sign-in">
${told}<p><label for="key">API key</label></p>
<p><input id="key" name="key" type="password" autocomplete="current-password" required autofocus></p>
<p><button>Sign in</button></p>
</form>
<p class="dim">A key with the scope read is enough to look around.
<code>sluice keys create --name me --scopes read</code> makes one. <a href="docs">HTTP API</a></p>
</main>`,
  );
}
