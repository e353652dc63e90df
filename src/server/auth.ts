import type { FastifyRequest } from 'fastify';
import { SluiceError } from '../domain/errors.js';
import { isConfined } from '../domain/confinement.js';
import { allows, type RouteScope } from '../domain/scopes.js';
import type { Credential, KeyHolder } from '../engine/api-keys.js';
import type { App, Doors } from './app-parts.js';
import { concernsAll } from './callers-api.js';
import { Attempts } from './attempts.js';
import { isForThisMachine, isFromElsewhere, isFromOwnPage } from './origin.js';
import type { KeyRing } from './ports.js';
import { sessionToken } from './session-cookie.js';

/** Decides about every request before its body is read. */
export class Auth {
  readonly #keys: KeyRing;
  readonly #doors: Pick<Doors, 'corsOrigins'>;
  readonly #failed = new Attempts();

  constructor(keys: KeyRing, doors: Pick<Doors, 'corsOrigins'>) {
    this.#keys = keys;
    this.#doors = doors;
  }

  watch(app: App): void {
    app.decorateRequest('holder', null);
    app.addHook('onRequest', (request) => this.#admit(request));
    app.addHook('preHandler', (request, _reply, done) => {
      this.#refuseEnded(request);
      done();
    });
  }

  /** Null: it is no good key. Throws when this address has tried too often. */
  async identify(request: FastifyRequest, key: string): Promise<KeyHolder | null> {
    return this.#check(request, key, 'key');
  }

  /** Who signed in, where nobody has to; null: nobody did, or it is over. */
  async greet(request: FastifyRequest): Promise<KeyHolder | null> {
    const token = sessionToken(request);
    if (token === null || !this.#keys.areNeeded()) return null;
    return this.#keys.authenticate(token, 'session', this.#mayLook(request));
  }

  async #admit(request: FastifyRequest): Promise<void> {
    // There is nothing to call.
    if (request.is404) return;
    const { scope = 'admin', confined = 'refused' } = request.routeOptions.config;
    if (scope === 'open') return;
    if (!this.#keys.areNeeded()) {
      this.#refuseStrangers(request);
      return;
    }
    request.holder = await this.#findHolder(request);
    if (request.holder === null) throw unauthorized();
    if (!allows(request.holder.scopes, scope)) throw missing(request.holder, scope);
    if (confined === 'refused' && isConfined(request.holder.confinement)) throw concernsAll();
  }

  /** A body may take a minute to arrive: its key may have ended since it was let in. */
  #refuseEnded({ is404, holder, routeOptions }: FastifyRequest): void {
    if (is404 || routeOptions.config.scope === 'open') return;
    if (!this.#keys.isGood(holder?.keyId ?? null)) throw unauthorized();
  }

  async #findHolder(request: FastifyRequest): Promise<KeyHolder | null> {
    const { authorization } = request.headers;
    if (authorization !== undefined) return this.identify(request, bearerOf(authorization));
    const token = sessionToken(request);
    if (token === null) return null;
    const holder = await this.#check(request, token, 'session');
    if (holder !== null && changesSomething(request)) refuseOtherPages(request);
    return holder;
  }

  /** A bad one counts against its address; a good one is let in whatever was counted. */
  async #check(
    request: FastifyRequest,
    text: string,
    credential: Credential,
  ): Promise<KeyHolder | null> {
    const blockedForMs = this.#blockedForMs(request);
    const holder = await this.#keys.authenticate(text, credential, blockedForMs === null);
    if (holder !== null) return holder;
    this.#failed.note(request.ip, performance.now());
    if (blockedForMs === null) return null;
    throw new SluiceError('refused', 'Too many calls with a bad key came from this address.', {
      retryAfterSeconds: Math.max(1, Math.ceil(blockedForMs / 1000)),
    });
  }

  #mayLook(request: FastifyRequest): boolean {
    return this.#blockedForMs(request) === null;
  }

  #blockedForMs({ ip }: FastifyRequest): number | null {
    return this.#failed.blockedForMs(ip, performance.now());
  }

  /**
   * Without keys only this machine may call. A page in a browser on it may not: neither under a name
   * that was pointed here (DNS rebinding) nor from a site that the browser happens to show.
   */
  #refuseStrangers(request: FastifyRequest): void {
    if (!isForThisMachine(request)) {
      throw new SluiceError(
        'forbidden',
        'Without API keys only calls to localhost or 127.0.0.1 are answered. ' +
          'To be called by another name, make a key: sluice keys create',
      );
    }
    if (isFromElsewhere(request, this.#doors.corsOrigins)) {
      throw new SluiceError('forbidden', 'Pages of other sites may not call this server.');
    }
  }
}

/** Says nothing about which keys exist. */
export function unauthorized(): SluiceError {
  return new SluiceError(
    'unauthorized',
    'This call needs a valid API key, as "Authorization: Bearer sluice_…".',
  );
}

/** A cookie is sent along by the browser, whoever made it send the request. */
export function refuseOtherPages(request: FastifyRequest): void {
  if (isFromOwnPage(request)) return;
  throw new SluiceError(
    'forbidden',
    'Whoever signed in changes things from a page of this server only. Programs use a key.',
  );
}

function missing({ scopes }: KeyHolder, scope: RouteScope): SluiceError {
  const detail = `This call needs the scope ${scope}; this key has ${scopes.join(', ')}.`;
  return new SluiceError('forbidden', detail);
}

function bearerOf(authorization: string): string {
  return /^Bearer +(\S+) *$/i.exec(authorization)?.[1] ?? '';
}

function changesSomething({ method }: FastifyRequest): boolean {
  return method !== 'GET' && method !== 'HEAD';
}
