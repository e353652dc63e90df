import { isQueuePattern } from '../domain/confinement.js';
import { SluiceError } from '../domain/errors.js';
import type { CreatedKey, KeyApi, KeyDraft, KeyView, SessionView } from '../protocol/keys-api.js';
import { invalidField } from '../protocol/problem-wire.js';
import type { Page, PageRequest } from '../protocol/page.js';
import {
  endSession,
  insertKey,
  listKeys,
  listSessions,
  revokeKey,
  toView,
} from '../store/api-keys.js';
import type { Database, Instant } from '../store/database.js';
import { patiently } from './context.js';
import { keyHash, newKeyText } from './key-text.js';

/** The keys of a database. It needs no server: the first key is made before anybody may call one. */
export class StoredKeys implements KeyApi {
  readonly #db: Database;
  readonly #now: () => Instant;

  constructor(db: Database, now: () => Instant = () => null) {
    this.#db = db;
    this.#now = now;
  }

  async createKey(draft: KeyDraft): Promise<CreatedKey> {
    const { name, scopes, passesCeilings = false, expiresInSeconds = null } = draft;
    const { queues = null, ownTasks = false } = draft;
    refuseFaults(draft);
    const { id, text } = newKeyText();
    const hash = keyHash(text, queues !== null || ownTasks).toString('hex');
    const { isFirst, ...key } = await insertKey(
      this.#db,
      {
        ...{ id, name, hash, scopes: [...new Set(scopes)], passesCeilings, expiresInSeconds },
        ...{ queues, ownTasks },
      },
      this.#now(),
    );
    return { ...toView(key), key: text, isFirst };
  }

  listKeys(page: PageRequest = {}): Promise<Page<KeyView>> {
    return listKeys(this.#db, page);
  }

  async revokeKey(id: string): Promise<KeyView> {
    const key = await patiently(() => revokeKey(this.#db, id, this.#now()));
    if (key === null) throw keyNotFound(id);
    return toView(key);
  }

  async listSessions(keyId: string): Promise<readonly SessionView[]> {
    const sessions = await listSessions(this.#db, keyId, this.#now());
    if (sessions === null) throw keyNotFound(keyId);
    return sessions;
  }

  async endSession(keyId: string, sessionId: string): Promise<SessionView> {
    const ended = await patiently(() => endSession(this.#db, { keyId, sessionId }, this.#now()));
    if (ended !== null) return ended;
    const detail = `API key ${keyId} has no session ${sessionId}.`;
    throw new SluiceError('session_not_found', detail);
  }
}

function keyNotFound(id: string): SluiceError {
  return new SluiceError('key_not_found', `There is no API key ${id}.`);
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
