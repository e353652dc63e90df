import type { AuditChanges } from '../domain/audit.js';
import type { JsonObject } from '../domain/json.js';
import type { AuditEntry, AuditFilter } from './audit-api.js';
import type { AuditEntryWire, AuditPageWire, ListAuditQueryWire } from './audit-schema.js';
import { timestampFromWire, timestampToWire } from './common-wire.js';
import { defined } from './defined.js';
import { timestampFieldToWire, writeRequest, type FieldsOf } from './fields.js';
import type { Page, PageRequest } from './page.js';

/** Of the filter and the page, which are asked for together. */
export const auditFields = {
  actor: 'actor',
  action: 'action',
  subject: 'subject',
  from: { wire: 'from', write: timestampFieldToWire },
  to: { wire: 'to', write: timestampFieldToWire },
  limit: 'limit',
  cursor: 'cursor',
} as const satisfies FieldsOf<AuditFilter & PageRequest>;

export function auditQueryToWire(filter: AuditFilter, page: PageRequest): ListAuditQueryWire {
  return writeRequest(auditFields, { ...filter, ...page }) as ListAuditQueryWire;
}

export function auditFilterFromWire(wire: ListAuditQueryWire): AuditFilter {
  return defined({
    actor: wire.actor,
    action: wire.action,
    subject: wire.subject,
    from: wire.from === undefined ? undefined : timestampFromWire(wire.from),
    to: wire.to === undefined ? undefined : timestampFromWire(wire.to),
  });
}

export function auditPageToWire({ items, nextCursor }: Page<AuditEntry>): AuditPageWire {
  return { items: items.map(entryToWire), next_cursor: nextCursor };
}

export function auditPageFromWire(wire: AuditPageWire): Page<AuditEntry> {
  return { items: wire.items.map(entryFromWire), nextCursor: wire.next_cursor };
}

function entryToWire(entry: AuditEntry): AuditEntryWire {
  const { kind, keyId, keyName, sessionId, address } = entry.actor;
  return {
    id: entry.id,
    at: timestampToWire(entry.at),
    actor: { kind, key_id: keyId, key_name: keyName, session_id: sessionId, address },
    action: entry.action,
    subject: entry.subject,
    changes: { ...entry.changes },
    details: { ...entry.details },
  };
}

function entryFromWire(wire: AuditEntryWire): AuditEntry {
  const { kind, key_id: keyId, key_name: keyName, session_id: sessionId, address } = wire.actor;
  return {
    id: wire.id,
    at: timestampFromWire(wire.at),
    actor: { kind, keyId, keyName, sessionId, address },
    action: wire.action,
    subject: wire.subject,
    changes: wire.changes as AuditChanges,
    details: wire.details as JsonObject,
  };
}
