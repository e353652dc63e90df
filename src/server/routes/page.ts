import { defined } from '../../protocol/defined.js';
import type { PageRequest } from '../../protocol/page.js';

export function pageOf(query: { limit?: number; cursor?: string }): PageRequest {
  return defined({ limit: query.limit, cursor: query.cursor });
}
