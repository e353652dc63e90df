import {
  timestampFromWire,
  timestampOrNullFromWire,
  timestampOrNullToWire,
  timestampToWire,
} from './common-wire.js';
import { defined } from './defined.js';
import { writeRequest, type FieldsOf } from './fields.js';
import type { CreatedKey, KeyDraft, KeyView, SessionView } from './keys-api.js';
import type {
  CreatedKeyWire,
  KeyDraftWire,
  KeyPageWire,
  KeyWire,
  SessionListWire,
  SessionWire,
} from './keys-schema.js';
import type { Page } from './page.js';

export function keyDraftFromWire(wire: KeyDraftWire): KeyDraft {
  return defined({
    name: wire.name,
    scopes: wire.scopes,
    expiresInSeconds: wire.expires_in_seconds,
    passesCeilings: wire.passes_ceilings,
    queues: wire.queues,
    ownTasks: wire.own_tasks,
  });
}

export const keyDraftFields = {
  name: 'name',
  scopes: 'scopes',
  expiresInSeconds: 'expires_in_seconds',
  passesCeilings: 'passes_ceilings',
  queues: 'queues',
  ownTasks: 'own_tasks',
} as const satisfies FieldsOf<KeyDraft>;

export function keyDraftToWire(draft: KeyDraft): KeyDraftWire {
  return writeRequest(keyDraftFields, draft) as KeyDraftWire;
}

export function keyToWire(key: KeyView): KeyWire {
  return {
    id: key.id,
    name: key.name,
    scopes: [...key.scopes],
    passes_ceilings: key.passesCeilings,
    queues: key.queues?.slice() ?? null,
    own_tasks: key.ownTasks,
    created_at: timestampToWire(key.createdAt),
    expires_at: timestampOrNullToWire(key.expiresAt),
    revoked_at: timestampOrNullToWire(key.revokedAt),
    last_used_at: timestampOrNullToWire(key.lastUsedAt),
  };
}

export function keyFromWire(wire: KeyWire): KeyView {
  return {
    id: wire.id,
    name: wire.name,
    scopes: wire.scopes,
    passesCeilings: wire.passes_ceilings,
    queues: wire.queues,
    ownTasks: wire.own_tasks,
    createdAt: timestampFromWire(wire.created_at),
    expiresAt: timestampOrNullFromWire(wire.expires_at),
    revokedAt: timestampOrNullFromWire(wire.revoked_at),
    lastUsedAt: timestampOrNullFromWire(wire.last_used_at),
  };
}

export function createdKeyToWire(created: CreatedKey): CreatedKeyWire {
  return { ...keyToWire(created), key: created.key, is_first: created.isFirst };
}

export function createdKeyFromWire(wire: CreatedKeyWire): CreatedKey {
  return { ...keyFromWire(wire), key: wire.key, isFirst: wire.is_first };
}

export function keyPageToWire({ items, nextCursor }: Page<KeyView>): KeyPageWire {
  return { items: items.map(keyToWire), next_cursor: nextCursor };
}

export function keyPageFromWire({ items, next_cursor }: KeyPageWire): Page<KeyView> {
  return { items: items.map(keyFromWire), nextCursor: next_cursor };
}

export function sessionToWire(session: SessionView): SessionWire {
  return {
    id: session.id,
    key_id: session.keyId,
    signed_in_from: session.signedInFrom,
    created_at: timestampToWire(session.createdAt),
    expires_at: timestampToWire(session.expiresAt),
    last_used_at: timestampOrNullToWire(session.lastUsedAt),
    ended_at: timestampOrNullToWire(session.endedAt),
  };
}

export function sessionFromWire(wire: SessionWire): SessionView {
  return {
    id: wire.id,
    keyId: wire.key_id,
    signedInFrom: wire.signed_in_from,
    createdAt: timestampFromWire(wire.created_at),
    expiresAt: timestampFromWire(wire.expires_at),
    lastUsedAt: timestampOrNullFromWire(wire.last_used_at),
    endedAt: timestampOrNullFromWire(wire.ended_at),
  };
}

export function sessionListToWire(sessions: readonly SessionView[]): SessionListWire {
  return { items: sessions.map(sessionToWire), next_cursor: null };
}
