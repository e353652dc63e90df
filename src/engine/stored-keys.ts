import { SluiceError } from '../domain/errors.js';
import type { CreatedKey, KeyApi, KeyDraft, KeyView } from '../protocol/keys-api.js';
import type { Page, PageRequest } from '../protocol/page.js';
import { insertKey, listKeys, revokeKey, toView } from '../store/api-keys.js';
import type { Instant, Queryable } from '../store/database.js';
import { keyHash, newKeyText } from './key-text.js';

/** The keys of a database. It needs no server: the first key is made before anybody may call one. */
export class StoredKeys implements KeyApi {
  readonly #db: Queryable;
  readonly #now: () => Instant;

  constructor(db: Queryable, now: () => Instant = () => null) {
    this.#db = db;
    this.#now = now;
  }

  async createKey(draft: KeyDraft): Promise<CreatedKey> {
    const { name, scopes, passesCeilings = false, expiresInSeconds = null } = draft;
    const { id, text } = newKeyText();
    const hash = keyHash(text).toString('hex');
    const { isFirst, ...key } = await insertKey(
      this.#db,
      { id, name, hash, scopes: [...new Set(scopes)], passesCeilings, expiresInSeconds },
      this.#now(),
    );
    return { ...toView(key), key: text, isFirst };
  }

  listKeys(page: PageRequest = {}): Promise<Page<KeyView>> {
    return listKeys(this.#db, page);
  }

  async revokeKey(id: string): Promise<KeyView> {
    const key = await revokeKey(this.#db, id, this.#now());
    if (key === null) throw new SluiceError('key_not_found', `There is no API key ${id}.`);
    return toView(key);
  }
}
