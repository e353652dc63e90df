import { isDeepStrictEqual } from 'node:util';
import { isQueuePattern } from '../domain/confinement.js';
import { SluiceError } from '../domain/errors.js';
import type { JsonObject } from '../domain/json.js';
import { anybody, type Caller } from '../protocol/caller.js';
import type { CreatedKey, KeyApi, KeyDraft, KeyView, SessionView } from '../protocol/keys-api.js';
import { invalidField } from '../protocol/problem-wire.js';
import type { Page, PageRequest } from '../protocol/page.js';
import {
  endSession,
  findKey,
  insertKey,
  listKeys,
  listSessions,
  revokeKey,
  toView,
  type StoredKey,
} from '../store/api-keys.js';
import type { Database, Instant, Queryable } from '../store/database.js';
import { Audit } from './audit.js';
import { patiently } from './context.js';
import { keyHash, keyIdIn, newKeyText, type KeyText } from './key-text.js';

/** The keys of a database. It needs no server: the first key is made before anybody may call one. */
export class StoredKeys implements KeyApi {
  readonly #db: Database;
  readonly #now: () => Instant;
  readonly #usual: Caller;
  readonly #audit: Audit;

  /** `usual`: who calls where no caller is named. */
  constructor(db: Database, now: () => Instant = () => null, usual = anybody) {
    this.#db = db;
    this.#now = now;
    this.#usual = usual;
    this.#audit = new Audit(now);
  }

  createKey(draft: KeyDraft, caller = this.#usual): Promise<CreatedKey> {
    return this.#insert(newKeyText(), draft, caller);
  }

  /**
   * Stores a key whose text was made elsewhere, so that machines can be given it before there is a database. Null: it
   * is there already, and may do the same. Only for whoever is at the database: no route leads here.
   */
  async adoptKey(text: string, draft: KeyDraft): Promise<CreatedKey | null> {
    const id = keyIdIn(text);
    if (id === null) throw invalidField('/key', 'is not a key, or was mistyped');
    const known = await findKey(this.#db, id);
    if (known !== null) return refuseOther(known, text, draft);
    return this.#insert({ id, text }, draft, this.#usual).catch(async (error: unknown) => {
      // Another container that starts at the same time was quicker.
      const quicker = await findKey(this.#db, id);
      if (quicker === null) throw error;
      return refuseOther(quicker, text, draft);
    });
  }

  async #insert({ id, text }: KeyText, draft: KeyDraft, caller: Caller): Promise<CreatedKey> {
    const { name, scopes, passesCeilings = false, expiresInSeconds = null } = draft;
    const { queues = null, ownTasks = false } = draft;
    refuseFaults(draft);
    const hash = keyHash(text, queues !== null || ownTasks).toString('hex');
    const made = {
      ...{ id, name, hash, scopes: [...new Set(scopes)], passesCeilings, expiresInSeconds },
      ...{ queues, ownTasks },
    };
    const { isFirst, ...key } = await this.#db.transaction(async (tx) => {
      const inserted = await insertKey(tx, made, this.#now());
      const details = keyDetails(inserted);
      await this.#audit.record(tx, caller, { action: 'key.create', subject: id, details });
      return inserted;
    });
    return { ...toView(key), key: text, isFirst };
  }

  listKeys(page: PageRequest = {}): Promise<Page<KeyView>> {
    return listKeys(this.#db, page);
  }

  async revokeKey(id: string, caller = this.#usual): Promise<KeyView> {
    const record = (tx: Queryable) =>
      this.#audit.record(tx, caller, { action: 'key.revoke', subject: id });
    const key = await patiently(() => revokeKey(this.#db, id, this.#now(), record));
    if (key === null) throw keyNotFound(id);
    return toView(key);
  }

  async listSessions(keyId: string): Promise<readonly SessionView[]> {
    const sessions = await listSessions(this.#db, keyId, this.#now());
    if (sessions === null) throw keyNotFound(keyId);
    return sessions;
  }

  async endSession(keyId: string, sessionId: string, caller = this.#usual): Promise<SessionView> {
    const isOwn = caller.actor.sessionId === sessionId;
    const action = isOwn ? 'session.sign_out' : 'session.end';
    const end = () =>
      this.#db.transaction(async (tx) => {
        const session = await endSession(tx, { keyId, sessionId }, this.#now());
        if (session === null) return null;
        await this.#audit.record(tx, caller, { action, subject: sessionId });
        return session;
      });
    const ended = await patiently(end);
    if (ended !== null) return ended;
    const detail = `API key ${keyId} has no session ${sessionId}.`;
    throw new SluiceError('session_not_found', detail);
  }
}

/** What it may do; never the key itself or its hash. */
function keyDetails({
  name,
  scopes,
  passesCeilings,
  queues,
  ownTasks,
  expiresAt,
}: KeyView): JsonObject {
  return {
    name,
    scopes,
    passes_ceilings: passesCeilings,
    queues,
    own_tasks: ownTasks,
    expires_at: expiresAt?.toISOString() ?? null,
  };
}

function keyNotFound(id: string): SluiceError {
  return new SluiceError('key_not_found', `There is no API key ${id}.`);
}

/** A key does not change what it may do, nor come back: that needs another one. */
function refuseOther(known: StoredKey, text: string, draft: KeyDraft): null {
  const hash = keyHash(text, known.queues !== null || known.ownTasks).toString('hex');
  const fault = faultOf(known, draft);
  const found = hash === known.hash ? fault : 'is there already, with another secret';
  if (found === null) return null;
  throw new SluiceError('invalid_request', `API key ${known.id} ${found}: make a new key.`);
}

function faultOf(known: StoredKey, draft: KeyDraft): string | null {
  const { revokedAt, expiresAt } = known;
  if (revokedAt !== null) return 'is revoked';
  if (expiresAt !== null && expiresAt <= new Date()) return 'has expired';
  return isDeepStrictEqual(mayDo(known), mayDo(draft))
    ? null
    : 'is there already, and may do something else';
}

function mayDo({ scopes, queues, ownTasks, passesCeilings }: KeyDraft | StoredKey): unknown[] {
  return [
    [...new Set(scopes)].toSorted(),
    queues ?? null,
    ownTasks ?? false,
    passesCeilings ?? false,
  ];
}

/** An admin makes keys and a worker takes tasks of everybody: neither has tasks of its own. */
function refuseFaults({ ownTasks = false, scopes, queues }: KeyDraft): void {
  const bad = queues?.length === 0 ? '' : queues?.find((pattern) => !isQueuePattern(pattern));
  if (bad !== undefined) {
    throw invalidField(
      '/queues',
      `"${bad}" is neither a queue nor the beginning of one with a * after it`,
    );
  }
  const tooMuch = scopes.filter((scope) => scope === 'admin' || scope === 'worker');
  if (!ownTasks || tooMuch.length === 0) return;
  const message = `own_tasks goes with the scopes submit and read, not with ${tooMuch.join(', ')}`;
  throw invalidField('/own_tasks', message);
}
