import { defined } from '../../protocol/defined.js';
import type { PageRequest } from '../../protocol/page.js';

import type { ListRequest } from '../../protocol/tasks-api.js';
import { includeFromWire } from '../../protocol/tasks-wire.js';

export function listOf(query: { limit?: number; cursor?: string; include?: string }): ListRequest {
  return defined({ ...pageOf(query), include: includeFromWire(query.include) });
}

export function pageOf(query: { limit?: number; cursor?: string }): PageRequest {
  return defined({ limit: query.limit, cursor: query.cursor });
}
