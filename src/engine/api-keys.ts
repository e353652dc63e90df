import { timingSafeEqual } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { isConfined, type Confinement } from '../domain/confinement.js';
import { SluiceError } from '../domain/errors.js';
import type { Scope } from '../domain/scopes.js';
import { anybody, type Caller } from '../protocol/caller.js';
import type { CreatedKey, KeyApi, KeyDraft, KeyView, SessionView } from '../protocol/keys-api.js';
import type { Page, PageRequest } from '../protocol/page.js';
import { Loop } from '../runtime/loop.js';
import {
  findKeysChanged,
  insertSession,
  noteKeysUsed,
  wasAnyKeyMade,
  type StoredKey,
} from '../store/api-keys.js';
import type { Queryable } from '../store/database.js';
import { Audit } from './audit.js';
import { approximateNow, asRefusal, instant, patiently, type EngineContext } from './context.js';
import { keyHash, keyIdIn, newKeyText, storedHash } from './key-text.js';
import { StoredKeys } from './stored-keys.js';

/** How often a server reads what others changed, when the bus did not tell it. */
const refreshMs = 400;
/** The same while there is no key: then only the first one can be news. */
const refreshWithoutKeysMs = 2_000;
/** A copy that was read longer ago judges no call: a key revoked elsewhere is refused within a second. */
const freshForMs = 1_000;
/** How long a call waits for a fresh copy. */
const freshWithinMs = 2_000;
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
  readonly confinement: Confinement;
  /** Where it calls from, if that is known better than from the connection; null: it is not known. */
  readonly address?: string | null;
}

interface KnownKey extends KeyHolder {
  readonly credential: Credential;
  readonly hash: Buffer;
  readonly expiresAtMs: number;
}

/**
 * A copy of all keys that are good, at most a second old: judging a call costs no query. A session is
 * good only while its key is in the copy, so that nothing has to end the sessions of a key. Once a key
 * was made keys are needed, also when all of them have ended.
 */
export class ApiKeys implements KeyApi {
  readonly #context: EngineContext;
  readonly #stored: StoredKeys;
  readonly #audit: Audit;
  readonly #known = new Map<string, KnownKey>();
  readonly #used = new Map<string, number>();
  readonly #notedMs = new Map<string, number>();
  readonly #listeners = new Set<() => void>();
  readonly #loop: Loop;
  readonly #stopListening: () => void;
  #needed = false;
  #readAt: Date | null = null;
  #nextWholeMs = -Infinity;
  /** When the read of the present copy began, by the clock of this process. */
  #copiedMs = -Infinity;
  #reading: Promise<void> = Promise.resolve();
  /** Has not begun yet. */
  #nextRead: Promise<void> | null = null;
  #looking: Promise<void> | null = null;
  #lookedMs = -Infinity;
  readonly #onUnreadable: () => void;

  /** `onUnreadable`: calls are refused because the keys could not be read, also heartbeats. */
  constructor(
    context: EngineContext,
    onError: (error: unknown) => void,
    onUnreadable: () => void = () => undefined,
  ) {
    this.#context = context;
    this.#onUnreadable = onUnreadable;
    this.#stored = new StoredKeys(context.db, () => instant(context));
    this.#audit = new Audit(() => instant(context));
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
    return this.#findGood(keyId) !== null;
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
    await this.#ensureFresh();
    const found = this.#find(id, text, credential);
    if (found !== null || !mayLook) return found;
    await this.#lookAgain().catch((error: unknown) => {
      throw asRefusal(error);
    });
    return this.#find(id, text, credential);
  }

  /** Null: its key ended meanwhile. */
  async signIn(
    { owner, name, confinement }: KeyHolder,
    signedInFrom: string | null = null,
  ): Promise<{ token: string; lifeSeconds: number } | null> {
    const { id, text } = newKeyText();
    const hash = keyHash(text, isConfined(confinement)).toString('hex');
    const made = { id, hash, of: owner, lifeSeconds: sessionSeconds, signedInFrom };
    const { db } = this.#context;
    const actor = { kind: 'session', keyId: owner, keyName: name, sessionId: id } as const;
    const record = (tx: Queryable) =>
      this.#audit.record(
        tx,
        { actor: { ...actor, address: signedInFrom } },
        { action: 'session.sign_in', subject: id },
      );
    const session = await this.#write(() =>
      patiently(() => insertSession(db, made, instant(this.#context), record)),
    );
    if (session === null) return null;
    return { token: text, lifeSeconds: sessionSeconds };
  }

  async signOut({ owner, keyId }: KeyHolder, caller: Caller): Promise<void> {
    await this.endSession(owner, keyId, caller);
  }

  createKey(draft: KeyDraft, caller = anybody): Promise<CreatedKey> {
    return this.#write(() => this.#stored.createKey(draft, caller));
  }

  listKeys(page: PageRequest = {}): Promise<Page<KeyView>> {
    return this.#stored.listKeys(page);
  }

  revokeKey(id: string, caller = anybody): Promise<KeyView> {
    return this.#write(() => this.#stored.revokeKey(id, caller));
  }

  listSessions(keyId: string): Promise<readonly SessionView[]> {
    return this.#stored.listSessions(keyId);
  }

  endSession(keyId: string, sessionId: string, caller = anybody): Promise<SessionView> {
    return this.#write(() => this.#stored.endSession(keyId, sessionId, caller));
  }

  #find(id: string, text: string, credential: Credential): KeyHolder | null {
    const key = this.#known.get(id);
    const hash = keyHash(text, key !== undefined && isConfined(key.confinement));
    const isSame = timingSafeEqual(hash, key?.hash ?? nobody);
    if (key === undefined || !isSame || key.credential !== credential) return null;
    const holder = this.#findGood(id);
    if (holder !== null) this.#noteUse(holder);
    return holder;
  }

  /** A session may what its key may now, not what the key could do when somebody signed in. */
  #findGood(id: string): KeyHolder | null {
    const found = this.#known.get(id);
    if (found === undefined || found.expiresAtMs <= this.#nowMs()) return null;
    if (found.owner === id) return found;
    const key = this.#known.get(found.owner);
    if (key === undefined || key.expiresAtMs <= this.#nowMs()) return null;
    return { ...key, keyId: id };
  }

  async #tick(): Promise<number> {
    this.#forgetExpired();
    await this.#refresh();
    await this.#writeUses();
    return this.#needed ? refreshMs : refreshWithoutKeysMs;
  }

  /** After the commit: here at once, elsewhere soon. */
  async #write<Answer>(write: () => Promise<Answer>): Promise<Answer> {
    try {
      const answer = await write();
      await this.#refresh();
      this.#context.bus.publish({ kind: news });
      return answer;
    } catch (error) {
      throw asRefusal(error);
    }
  }

  /**
   * After a pause of this process or of Postgres the copy is older than a revocation may be. Refuses
   * when it cannot be read: a call that is let in would need Postgres as well.
   */
  async #ensureFresh(): Promise<void> {
    if (performance.now() - this.#copiedMs <= freshForMs) return;
    const tooLate = delay(freshWithinMs, undefined, { ref: false }).then(() => {
      throw new SluiceError('unavailable', 'The API keys could not be read in time. Try again.', {
        retryAfterSeconds: 1,
      });
    });
    tooLate.catch(() => undefined);
    await Promise.race([this.#refresh(), tooLate]).catch((error: unknown) => {
      this.#onUnreadable();
      throw asRefusal(error);
    });
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

  /**
   * Resolves after a read that began after this call. One after the other: what was read first must not
   * be learned last. All who ask during a read share the next one.
   */
  #refresh(): Promise<void> {
    if (this.#nextRead !== null) return this.#nextRead;
    const read = this.#reading
      .catch(() => undefined)
      .then(() => {
        this.#nextRead = null;
        return this.#read();
      });
    this.#nextRead = read;
    this.#reading = read;
    return read;
  }

  async #read(): Promise<void> {
    // Heartbeats wait for this read.
    const db = this.#context.db.vital;
    const copiedMs = performance.now();
    const isWhole = this.#readAt === null || copiedMs >= this.#nextWholeMs;
    const since = isWhole ? null : new Date((this.#readAt?.getTime() ?? 0) - overlapMs);
    const { keys, readAt } = await findKeysChanged(db, since, instant(this.#context));
    const needed = this.#needed || keys.length > 0 || (since === null && (await wasAnyKeyMade(db)));
    this.#readAt = readAt;
    this.#copiedMs = copiedMs;
    const isNewlyNeeded = needed && !this.#needed;
    this.#needed = needed;
    // A revocation that committed later than the overlap is in no read of what changed.
    const hasEnded = isWhole && this.#keepOnly(keys);
    if (isWhole) this.#nextWholeMs = copiedMs + this.#context.settings.rereadIntervalMs;
    if (this.#learn(keys) || hasEnded || isNewlyNeeded) this.#tellEnded();
  }

  /** True: one that was good is not any more. Reads come one after the other: no key is newer than this. */
  #keepOnly(keys: readonly StoredKey[]): boolean {
    const good = new Set(keys.map(({ id }) => id));
    const ended = [...this.#known.keys()].filter((id) => !good.has(id));
    for (const id of ended) this.#forget(id);
    return ended.length > 0;
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

  /** Not more than once a minute for each key and session, all of them in one statement. */
  #noteUse({ owner, keyId }: KeyHolder): void {
    this.#noteUseOf(owner);
    if (keyId !== owner) this.#noteUseOf(keyId);
  }

  #noteUseOf(id: string): void {
    const nowMs = this.#nowMs();
    if (nowMs - (this.#notedMs.get(id) ?? -Infinity) < noteUseEveryMs) return;
    this.#notedMs.set(id, nowMs);
    this.#used.set(id, nowMs);
  }

  async #writeUses(): Promise<void> {
    const used = [...this.#used].map(([id, atMs]) => ({ id, at: new Date(atMs) }));
    if (used.length === 0) return;
    const written = await noteKeysUsed(this.#context.db, used);
    for (const { id, at } of used) {
      const isDone = written.has(id) || !this.#known.has(id);
      if (isDone && this.#used.get(id) === at.getTime()) this.#used.delete(id);
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
    confinement: { queues: key.queues, owner: key.ownTasks ? (key.sessionOf ?? key.id) : null },
    credential: key.sessionOf === null ? 'key' : 'session',
    hash: storedHash(key.hash),
    expiresAtMs: key.expiresAt?.getTime() ?? Infinity,
  };
}
