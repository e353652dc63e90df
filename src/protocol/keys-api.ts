import type { Scope } from '../domain/scopes.js';
import type { Page, PageRequest } from './page.js';

export interface KeyDraft {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** Absent: until it is revoked. */
  readonly expiresInSeconds?: number;
  readonly passesCeilings?: boolean;
}

export interface KeyView {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly passesCeilings: boolean;
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
  /** Right to the minute; null: never. */
  readonly lastUsedAt: Date | null;
}

export interface CreatedKey extends KeyView {
  /** Told this once: only its hash is kept. */
  readonly key: string;
  /** From the first key on every call needs one. */
  readonly isFirst: boolean;
}

export interface KeyApi {
  createKey(draft: KeyDraft): Promise<CreatedKey>;
  listKeys(page?: PageRequest): Promise<Page<KeyView>>;
  /** Again gives the same answer. */
  revokeKey(id: string): Promise<KeyView>;
}
