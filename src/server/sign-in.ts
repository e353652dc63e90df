import type { FastifyReply } from 'fastify';
import { SluiceError } from '../domain/errors.js';
import type { App, RouteParts } from './app-parts.js';
import { Attempts } from './attempts.js';
import { refuseOtherPages, type Auth } from './auth.js';
import { callerOf } from './caller.js';
import { sendPage } from './security-headers.js';
import { clearSessionCookie, setSessionCookie } from './session-cookie.js';
import { renderSignInPage } from './sign-in-page.js';

const options = {
  schema: { hide: true },
  config: { scope: 'open' },
  bodyLimit: 4_096,
} as const;
const badKey = 'This is not a valid API key.';
const tooOften = 'Too many signed in with this key or from this address. Try again in a minute.';
const signInsPerMinute = { ofKey: 20, fromAddress: 30 };

/**
 * A key goes in by a form and comes back as a session: a token of its own in a cookie that no script
 * reads, so that the key is in no address and in no storage of a browser. In a scope of its own: forms
 * are understood nowhere else.
 */
export function signInRoutes(app: App, { keys }: RouteParts, auth: Auth): void {
  const limits = new SignInLimits();
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
      return sendTooMany(reply, holder.message, holder.retryAfterSeconds ?? 60);
    }
    const waitSeconds = holder === null ? null : limits.take(holder.owner, request.ip);
    if (waitSeconds !== null) return sendTooMany(reply, tooOften, waitSeconds);
    const session = holder === null ? null : await keys.signIn(holder, request.ip);
    if (session === null) {
      return sendPage(reply.code(401), renderSignInPage(badKey));
    }
    setSessionCookie(reply, session.token, session.lifeSeconds);
    return reply.redirect('./', 303);
  });

  app.post('/sign-out', options, async (request, reply) => {
    refuseOtherPages(request);
    const holder = await auth.greet(request);
    if (holder !== null) {
      await keys.signOut(holder, callerOf({ holder, ip: request.ip, headers: {} }));
    }
    clearSessionCookie(reply);
    return reply.redirect('./', 303);
  });
}

/** A sign-in writes to the database, and ends the oldest session of a key that has 20. */
class SignInLimits {
  readonly #ofKey = new Attempts({ attempts: signInsPerMinute.ofKey });
  readonly #fromAddress = new Attempts({ attempts: signInsPerMinute.fromAddress });

  /** Null: it may go on, and is counted. Else the seconds to wait. */
  take(keyId: string, address: string): number | null {
    const nowMs = performance.now();
    const blockedMs = Math.max(
      this.#ofKey.blockedForMs(keyId, nowMs) ?? 0,
      this.#fromAddress.blockedForMs(address, nowMs) ?? 0,
    );
    if (blockedMs > 0) return Math.max(1, Math.ceil(blockedMs / 1000));
    this.#ofKey.note(keyId, nowMs);
    this.#fromAddress.note(address, nowMs);
    return null;
  }
}

function sendTooMany(reply: FastifyReply, refusal: string, waitSeconds: number): FastifyReply {
  reply.code(429).header('retry-after', String(waitSeconds));
  return sendPage(reply, renderSignInPage(refusal));
}
