import { isUuid, type TaskId } from '../domain/ids.js';
import { badCursor, decodeCursor, encodeCursor } from '../store/paging.js';
import type { CancelCursor } from '../store/find-in-bulk.js';

/** Where a cancel by filter goes on. Of a workflow that is a place among its members. */
export function encodeBulkCursor(next: CancelCursor): string {
  return encodeCursor(String(next));
}

export function decodeBulkCursor(cursor: string, workflowId: string | undefined): CancelCursor {
  const key = decodeCursor(cursor);
  if (workflowId === undefined && isUuid(key)) return key as TaskId;
  if (workflowId !== undefined && /^\d{1,15}$/.test(key)) return Number(key);
  throw badCursor();
}
