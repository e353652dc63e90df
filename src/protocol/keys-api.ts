import type { Scope } from '../domain/scopes.js';
import type { Page, PageRequest } from './page.js';

export interface KeyDraft {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** Absent: until it is revoked. */
  readonly expiresInSeconds?: number;
  readonly passesCeilings?: boolean;
  /** Names, or beginnings of names followed by `*`. Absent: every queue. */
  readonly queues?: readonly string[];
  /** Whether it reaches only tasks that were submitted with it. */
  readonly ownTasks?: boolean;
}

export interface KeyView {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly passesCeilings: boolean;
  /** Null: every queue. */
  readonly queues: readonly string[] | null;
  readonly ownTasks: boolean;
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

/** Somebody who signed in with a key. It is good only while the key is. */
export interface SessionView {
  readonly id: string;
  readonly keyId: string;
  /** Null: the address was not kept. */
  readonly signedInFrom: string | null;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /** Right to the minute; null: never. */
  readonly lastUsedAt: Date | null;
  /** Null: it has not ended before its time. */
  readonly endedAt: Date | null;
}

export interface KeyApi {
  createKey(draft: KeyDraft): Promise<CreatedKey>;
  listKeys(page?: PageRequest): Promise<Page<KeyView>>;
  /** Again gives the same answer. */
  revokeKey(id: string): Promise<KeyView>;
  /** Those that are good, the newest first: 20 at most. */
  listSessions(keyId: string): Promise<readonly SessionView[]>;
  /** Signs one out. Again gives the same answer. */
  endSession(keyId: string, sessionId: string): Promise<SessionView>;
}
