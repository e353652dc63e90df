import type { Actor, AuditAction, AuditChanges } from '../domain/audit.js';
import type { JsonObject } from '../domain/json.js';
import type { Page, PageRequest } from './page.js';

/** Something that somebody changed. */
export interface AuditEntry {
  readonly id: number;
  readonly at: Date;
  readonly actor: Actor;
  readonly action: AuditAction;
  /** The name or id of what was changed; null: many at once. */
  readonly subject: string | null;
  /** By field, in the names of the API. Empty for a bulk action. */
  readonly changes: AuditChanges;
  /** Of a bulk action its filter and how many it met; of a key what it may do. */
  readonly details: JsonObject;
}

export interface AuditFilter {
  /** The id of a key or session, a person that a program acted for, or `key`, `session`, `local` or `process`. */
  readonly actor?: string;
  readonly action?: AuditAction;
  readonly subject?: string;
  /** Then or later. */
  readonly from?: Date;
  /** Before. */
  readonly to?: Date;
}

export interface AuditApi {
  /** Newest first. */
  listAudit(filter?: AuditFilter, page?: PageRequest): Promise<Page<AuditEntry>>;
}
