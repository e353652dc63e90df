import pg from 'pg';

import { hidePassword } from '../runtime/hide-password.js';
import { parsePostgresUrl, postgresUrlForm } from '../runtime/postgres-url.js';
import { codeOf } from './failures.js';

/** A host that accepts no writes: a standby, or a server that is set to read-only. */
export class ReadOnlyError extends Error {
  override readonly name = 'ReadOnlyError';
  /** As Postgres itself answers a write there. */
  readonly code = '25006';

  constructor(isStandby: boolean) {
    super(
      isStandby
        ? 'it is a standby (pg_is_in_recovery) and accepts no writes'
        : 'it is read-only (default_transaction_read_only = on) and accepts no writes',
    );
  }
}

/** A host that is down is noticed so soon that a request can still be answered by the next one. */
const manyHostsTimeoutMs = 3_000;

/** The password is wrong, or the database is not there: the other hosts would say the same. */
const sameEverywhere = /^(28|3D)/;

/**
 * The hosts of one URL. New connections go to the host that was good last; when it can't be reached or
 * accepts no writes, to the next one. After a failover that is the new primary.
 */
export class PgHosts {
  readonly mustWrite: boolean;
  readonly #urls: readonly string[];
  /** For one host. */
  readonly #connectTimeoutMs: number;
  readonly #reasons = new Map<number, string>();
  /** Raised when a host turns out to accept no writes: connections from before are dropped. */
  readonly #epochs: number[];
  readonly #placeOf = new WeakMap<
    pg.ClientBase,
    { readonly host: number; readonly epoch: number }
  >();
  #preferred = 0;
  #lastGood = 0;

  constructor(url: string, patienceMs: number) {
    const address = parsePostgresUrl(url);
    if (address === null) throw new Error(`A Postgres URL must be ${postgresUrlForm}.`);
    this.#urls = address.urls;
    this.#epochs = address.urls.map(() => 0);
    this.mustWrite = address.mustWrite;
    const most = this.count === 1 ? patienceMs : Math.min(patienceMs, manyHostsTimeoutMs);
    this.#connectTimeoutMs = address.connectTimeoutMs ?? most;
  }

  get count(): number {
    return this.#urls.length;
  }

  /** The host that the next connection goes to. */
  get preferred(): number {
    return this.#preferred;
  }

  /** The host to which the last connection was made that is good to use. */
  get lastGoodUrl(): string {
    return this.#urls[this.#lastGood] ?? '';
  }

  /** For a pool: each of its clients goes to the host that is preferred when it is made. */
  clientClass(): new (config?: pg.ClientConfig) => pg.Client {
    const choose = () => this.#preferred;
    const configOf = (host: number) => ({
      connectionString: this.#urls[host],
      connectionTimeoutMillis: this.#connectTimeoutMs,
    });
    const settle = (client: pg.Client, host: number) => {
      this.#placeOf.set(client, { host, epoch: this.#epochs[host] ?? 0 });
    };
    return class HostClient extends pg.Client {
      constructor(config?: pg.ClientConfig) {
        const host = choose();
        super({ ...config, ...configOf(host) });
        settle(this, host);
      }
    };
  }

  /** No connection could be made to the host; the next one is tried. */
  failed(host: number, error: unknown): void {
    if (sameEverywhere.test(codeOf(error))) return;
    this.#reasons.set(host, reasonOf(error));
    if (this.#preferred === host) this.#preferred = (host + 1) % this.count;
  }

  succeeded(client: pg.ClientBase): void {
    const place = this.#placeOf.get(client);
    if (place === undefined) return;
    this.#reasons.delete(place.host);
    this.#lastGood = place.host;
  }

  /** Of a statement: when its host accepts no writes any more, no connection to it is used again. */
  noteFailure(client: pg.ClientBase, error: unknown): void {
    const place = this.#placeOf.get(client);
    if (!this.mustWrite || place === undefined || codeOf(error) !== '25006') return;
    if (this.isOutdated(client)) return;
    this.#epochs[place.host] = place.epoch + 1;
    this.failed(place.host, error);
  }

  isOutdated(client: pg.ClientBase): boolean {
    const place = this.#placeOf.get(client);
    return place !== undefined && place.epoch !== this.#epochs[place.host];
  }

  /** Why each host is not used, for people; null: there is one host, and its error says it. */
  whyNone(): string | null {
    if (this.count === 1) return null;
    const reasons = this.#urls.flatMap((url, host) => {
      const reason = this.#reasons.get(host);
      return reason === undefined ? [] : [`${hostOf(url)}: ${reason}`];
    });
    return reasons.length === 0 ? null : reasons.join('; ');
  }
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : hidePassword(url);
}

/** Several addresses of one name fail together, and what they have in common has no text. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join(', ');
  return error instanceof Error ? error.message : String(error);
}
