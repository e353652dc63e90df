import { timingSafeEqual } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Scope } from '../domain/scopes.js';
import type { CreatedKey, KeyApi, KeyDraft, KeyView } from '../protocol/keys-api.js';
import type { Page, PageRequest } from '../protocol/page.js';
import { Loop } from '../runtime/loop.js';
import {
  findKeysChanged,
  insertSession,
  noteKeysUsed,
  revokeKey,
  wasAnyKeyMade,
  type StoredKey,
} from '../store/api-keys.js';
import { approximateNow, asRefusal, instant, type EngineContext } from './context.js';
import { keyHash, keyIdIn, newKeyText, storedHash } from './key-text.js';
import { StoredKeys } from './stored-keys.js';

/** So late at most does a server learn what another changed, when the bus did not tell it. */
const refreshMs = 2_000;
/** Whoever fails makes it look again, since the key may be new: not more often than this. */
const lookEveryMs = 250;
/** A change that committed late may be older than one already seen. */
const overlapMs = 30_000;
const noteUseEveryMs = 60_000;
const sessionSeconds = 12 * 3600;

/** Compared with when there is no such key, so that it takes as long as when there is. */
const nobody = keyHash('nobody');

/** `key`: told by `Authorization`. `session`: told by the cookie of whoever signed in. */
export type Credential = 'key' | 'session';

/** Who calls. */
export interface KeyHolder {
  /** Of the key or the session: what it ends with. */
  readonly keyId: string;
  /** The key, also for a session of it. */
  readonly owner: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly passesCeilings: boolean;
}

interface KnownKey extends KeyHolder {
  readonly credential: Credential;
  readonly hash: Buffer;
  readonly expiresAtMs: number;
}

/**
 * A copy of all keys that are good, read again every few seconds: to judge a call costs no look at the
 * database, whoever calls. Once a key was made keys are needed, also when all of them have ended.
 */
export class ApiKeys implements KeyApi {
  readonly #context: EngineContext;
  readonly #stored: StoredKeys;
  readonly #known = new Map<string, KnownKey>();
  readonly #used = new Map<string, number>();
  readonly #notedMs = new Map<string, number>();
  readonly #listeners = new Set<() => void>();
  readonly #loop: Loop;
  readonly #stopListening: () => void;
  #needed = false;
  #readAtMs: number | null = null;
  #reading: Promise<void> = Promise.resolve();
  #looking: Promise<void> | null = null;
  #lookedMs = -Infinity;

  constructor(context: EngineContext, onError: (error: unknown) => void) {
    this.#context = context;
    this.#stored = new StoredKeys(context.db, () => instant(context));
    this.#loop = new Loop({ tick: () => this.#tick(), onError });
    this.#stopListening = context.bus.subscribe((message) => {
      if (isNews(message)) this.#loop.wake();
    });
  }

  /** Knows all keys when it resolves, and follows what changes until it is stopped. */
  async watch(): Promise<void> {
    await this.#refresh();
    this.#loop.start();
  }

  async stop(): Promise<void> {
    this.#stopListening();
    await this.#loop.stop();
  }

  areNeeded(): boolean {
    return this.#needed;
  }

  /** Whether a call that was let in may go on; null: it came without a key. */
  isGood(keyId: string | null): boolean {
    if (keyId === null) return !this.#needed;
    const key = this.#known.get(keyId);
    return key !== undefined && key.expiresAtMs > this.#nowMs();
  }

  /** Tells when somebody who was let in may not be good any more. Answers with how to stop. */
  onEnded(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Null: nobody. All that fail take the same way, whether there is such a key or not. `mayLook` is
   * false for those who fail often.
   */
  async authenticate(
    text: string,
    credential: Credential,
    mayLook: boolean,
  ): Promise<KeyHolder | null> {
    const id = keyIdIn(text);
    if (id === null) return null;
    const hash = keyHash(text);
    const found = this.#find(id, hash, credential);
    if (found !== null || !mayLook) return found;
    await this.#lookAgain().catch((error: unknown) => {
      throw asRefusal(error);
    });
    return this.#find(id, hash, credential);
  }

  /** Null: its key ended meanwhile. */
  async signIn({ owner }: KeyHolder): Promise<{ token: string; lifeSeconds: number } | null> {
    const { id, text } = newKeyText();
    const hash = keyHash(text).toString('hex');
    const made = { id, hash, of: owner, lifeSeconds: sessionSeconds };
    const session = await insertSession(this.#context.db, made, instant(this.#context));
    if (session === null) return null;
    this.#learn([session]);
    this.#tellOthers();
    return { token: text, lifeSeconds: sessionSeconds };
  }

  async signOut({ keyId }: KeyHolder): Promise<void> {
    await revokeKey(this.#context.db, keyId, instant(this.#context));
    await this.#changed();
  }

  async createKey(draft: KeyDraft): Promise<CreatedKey> {
    const created = await this.#stored.createKey(draft);
    await this.#changed();
    return created;
  }

  listKeys(page: PageRequest = {}): Promise<Page<KeyView>> {
    return this.#stored.listKeys(page);
  }

  async revokeKey(id: string): Promise<KeyView> {
    const revoked = await this.#stored.revokeKey(id);
    await this.#changed();
    return revoked;
  }

  #find(id: string, hash: Buffer, credential: Credential): KeyHolder | null {
    const key = this.#known.get(id);
    const isSame = timingSafeEqual(hash, key?.hash ?? nobody);
    if (key === undefined || !isSame || key.credential !== credential) return null;
    if (key.expiresAtMs <= this.#nowMs()) return null;
    this.#noteUse(key);
    return key;
  }

  async #tick(): Promise<number> {
    this.#forgetExpired();
    await this.#writeUses();
    await this.#refresh();
    return refreshMs;
  }

  /** After a commit: here at once, elsewhere soon. */
  async #changed(): Promise<void> {
    await this.#refresh();
    this.#tellOthers();
  }

  #tellOthers(): void {
    this.#context.bus.publish({ kind: news });
  }

  /** Once for all who wait, and with a pause: who guesses gets no more looks at Postgres than this. */
  #lookAgain(): Promise<void> {
    this.#looking ??= this.#lookLater().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async #lookLater(): Promise<void> {
    const waitMs = this.#lookedMs + lookEveryMs - performance.now();
    if (waitMs > 0) await delay(waitMs);
    this.#lookedMs = performance.now();
    await this.#refresh();
  }

  /** One after the other: what was read first must not be learned last. */
  #refresh(): Promise<void> {
    this.#reading = this.#reading.catch(() => undefined).then(() => this.#read());
    return this.#reading;
  }

  async #read(): Promise<void> {
    const { db } = this.#context;
    const since = this.#readAtMs === null ? null : new Date(this.#readAtMs - overlapMs);
    const readAtMs = this.#nowMs();
    const keys = await findKeysChanged(db, since);
    const needed = this.#needed || keys.length > 0 || (since === null && (await wasAnyKeyMade(db)));
    this.#readAtMs = readAtMs;
    const isNewlyNeeded = needed && !this.#needed;
    this.#needed = needed;
    if (this.#learn(keys) || isNewlyNeeded) this.#tellEnded();
  }

  /** True: one that was good is not any more. */
  #learn(keys: readonly StoredKey[]): boolean {
    const nowMs = this.#nowMs();
    let hasEnded = false;
    for (const key of keys) {
      const known = toKnown(key);
      if (key.revokedAt === null && known.expiresAtMs > nowMs) this.#known.set(key.id, known);
      else hasEnded = this.#forget(key.id) || hasEnded;
    }
    return hasEnded;
  }

  #forgetExpired(): void {
    const nowMs = this.#nowMs();
    const expired = [...this.#known.values()].filter(({ expiresAtMs }) => expiresAtMs <= nowMs);
    for (const { keyId } of expired) this.#forget(keyId);
    if (expired.length > 0) this.#tellEnded();
  }

  #forget(keyId: string): boolean {
    this.#notedMs.delete(keyId);
    return this.#known.delete(keyId);
  }

  #tellEnded(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Not more than once a minute for each key, all of them in one statement. */
  #noteUse({ owner }: KnownKey): void {
    const nowMs = this.#nowMs();
    if (nowMs - (this.#notedMs.get(owner) ?? -Infinity) < noteUseEveryMs) return;
    this.#notedMs.set(owner, nowMs);
    this.#used.set(owner, nowMs);
  }

  async #writeUses(): Promise<void> {
    if (this.#used.size === 0) return;
    const used = [...this.#used].map(([id, atMs]) => ({ id, at: new Date(atMs) }));
    await noteKeysUsed(this.#context.db, used);
    for (const { id, at } of used) {
      if (this.#used.get(id) === at.getTime()) this.#used.delete(id);
    }
  }

  #nowMs(): number {
    return approximateNow(this.#context).getTime();
  }
}

const news = 'api keys';

function isNews(message: unknown): boolean {
  return (
    typeof message === 'object' && message !== null && 'kind' in message && message.kind === news
  );
}

function toKnown(key: StoredKey): KnownKey {
  return {
    keyId: key.id,
    owner: key.sessionOf ?? key.id,
    name: key.name,
    scopes: key.scopes,
    passesCeilings: key.passesCeilings,
    credential: key.sessionOf === null ? 'key' : 'session',
    hash: storedHash(key.hash),
    expiresAtMs: key.expiresAt?.getTime() ?? Infinity,
  };
}
