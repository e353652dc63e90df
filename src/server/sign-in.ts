import { SluiceError } from '../domain/errors.js';
import type { App, AppParts } from './app-parts.js';
import { refuseOtherPages, type Auth } from './auth.js';
import { renderHomePage } from './home-page.js';
import { sendPage } from './security-headers.js';
import { clearSessionCookie, setSessionCookie } from './session-cookie.js';

const options = {
  schema: { hide: true },
  config: { scope: 'open' },
  bodyLimit: 4_096,
} as const;
const badKey = 'This is not a valid API key.';

/**
 * A key goes in by a form and comes back as a session: a token of its own in a cookie that no script
 * reads, so that the key is in no address and in no storage of a browser. In a scope of its own: forms
 * are understood nowhere else.
 */
export function signInRoutes(app: App, { keys }: AppParts, auth: Auth): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    (_request, text, done) => {
      done(null, new URLSearchParams(String(text)));
    },
  );

  app.post('/sign-in', options, async (request, reply) => {
    refuseOtherPages(request);
    const key = request.body instanceof URLSearchParams ? request.body.get('key') : null;
    const holder = await auth.identify(request, (key ?? '').trim()).catch((error: unknown) => {
      if (error instanceof SluiceError && error.code === 'refused') return error;
      throw error;
    });
    if (holder instanceof SluiceError) {
      reply.code(429).header('retry-after', String(holder.retryAfterSeconds ?? 60));
      return sendPage(reply, renderHomePage({ kind: 'stranger', refusal: holder.message }));
    }
    const session = holder === null ? null : await keys.signIn(holder);
    if (session === null) {
      return sendPage(reply.code(401), renderHomePage({ kind: 'stranger', refusal: badKey }));
    }
    setSessionCookie(reply, session.token, session.lifeSeconds);
    return reply.redirect('/', 303);
  });

  app.post('/sign-out', options, async (request, reply) => {
    refuseOtherPages(request);
    const holder = await auth.greet(request);
    if (holder !== null) await keys.signOut(holder);
    clearSessionCookie(reply);
    return reply.redirect('/', 303);
  });
}
