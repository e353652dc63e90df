import type { PageRequest } from '../../protocol/api.js';
import { defined } from '../../protocol/defined.js';

export function pageOf(query: { limit?: number; cursor?: string }): PageRequest {
  return defined({ limit: query.limit, cursor: query.cursor });
}
