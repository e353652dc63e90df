import { randomBytes, timingSafeEqual } from 'node:crypto';
import { unconfined } from '../../domain/confinement.js';
import { isScope } from '../../domain/scopes.js';
import type { KeyHolder } from '../../engine/api-keys.js';
import type { Follower, Following } from '../../engine/cluster-events.js';
import type { Person, ProgramsApi, SluiceApi } from '../../protocol/api.js';
import type { Caller } from '../../protocol/caller.js';
import { silentLog } from '../../runtime/log.js';
import { buildApp } from '../app.js';
import type { App } from '../app-parts.js';
import type { EventSource, KeyRing, ServedApi } from '../ports.js';
import { optionalPages, type OptionalPages } from './page.js';

/** What a dashboard is mounted for: `Sluice.open()` or `connect()`. */
export interface Mountable {
  readonly api: ProgramsApi;
  /** Null: Sluice is far away, and its events are not followed; the page asks instead. */
  readonly events: { follow(follower: Follower): Following } | null;
}

export interface Passenger extends Person {
  readonly scopes: readonly string[];
}

/**
 * The HTTP API of this process, listening nowhere. Each call carries a session that was made for it here: every check
 * of a signed-in browser holds, that of the page a change comes from as well.
 */
export class MountedApp {
  readonly app: App;
  readonly #secret = randomBytes(32);

  constructor(api: SluiceApi, events: Mountable['events']) {
    this.app = buildApp({
      api: asServed(api),
      health: {
        degradation: () => null,
        readiness: async () => ({ ready: true }),
        progress: async () => ({ progressing: true }),
      },
      events: eventSource(events),
      metrics: { contentType: 'text/plain', text: async () => '' },
      log: silentLog,
      keys: this.#keyRing(),
    });
  }

  async optionalPages(): Promise<OptionalPages> {
    await this.app.ready();
    return optionalPages(this.app);
  }

  /** The cookie of a session that is good for one call. */
  cookieOf(passenger: Passenger): string {
    const told = Buffer.from(JSON.stringify(passenger)).toString('base64url');
    return `sluice_session=${this.#secret.toString('base64url')}.${told}`;
  }

  #keyRing(): KeyRing {
    return {
      areNeeded: () => true,
      authenticate: async (text, credential) =>
        credential === 'session' ? this.#holderOf(text) : null,
      isGood: () => true,
      onEnded: () => () => undefined,
      signIn: async () => null,
      signOut: async () => undefined,
    };
  }

  #holderOf(text: string): KeyHolder | null {
    const [secret = '', told = ''] = text.split('.');
    const given = Buffer.from(secret, 'base64url');
    if (given.length !== this.#secret.length || !timingSafeEqual(given, this.#secret)) return null;
    const passenger = JSON.parse(Buffer.from(told, 'base64url').toString()) as Passenger;
    const { name, scopes, address = null } = passenger;
    return {
      address,
      keyId: 'dashboard',
      // Each viewer has the places of one key for those who follow events.
      owner: `viewer ${name}`,
      name,
      scopes: scopes.filter(isScope),
      passesCeilings: false,
      confinement: unconfined,
    };
  }
}

/** Nobody here is confined, and no worker calls: what decides about those is never asked. */
function asServed(api: SluiceApi): ServedApi {
  const never = async () => Promise.reject(new Error('The dashboard serves people only'));
  const decides: Omit<ServedApi, keyof SluiceApi> = {
    refuseUnreached: never,
    refuseForeign: never,
    queuesOf: never,
    findWaitingQueues: never,
  };
  return new Proxy(api, {
    get: (target, name): unknown =>
      Reflect.get(decides, name) ?? (Reflect.get(target, name) as unknown),
  }) as ServedApi;
}

/** The same API. What somebody changes is written down in their name, wherever Sluice is. */
export function inTheirNames(api: ProgramsApi): SluiceApi {
  return new Proxy<SluiceApi>(api, {
    get(target, name): unknown {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== 'function') return method;
      return (...given: unknown[]) => {
        const last = given.at(-1);
        if (!isCaller(last)) return Reflect.apply(method, target, given) as unknown;
        const { keyName, address } = last.actor;
        const theirs = api.onBehalfOf({ name: keyName ?? 'somebody', address });
        const called = Reflect.get(theirs, name) as typeof method;
        return Reflect.apply(called, theirs, given.slice(0, -1)) as unknown;
      };
    },
  });
}

function isCaller(value: unknown): value is Caller {
  return typeof value === 'object' && value !== null && 'actor' in value && 'confinement' in value;
}

function eventSource(events: Mountable['events']): EventSource {
  return {
    subscribe: () => () => undefined,
    follow: (follower) =>
      events?.follow(follower) ?? { changed: () => undefined, stop: () => undefined },
  };
}
