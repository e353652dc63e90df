import { isUuid, type TaskId } from '../domain/ids.js';
import { badCursor, decodeCursor, encodeCursor } from '../store/paging.js';

/** Where a replay by filter goes on: behind which task, and when the next one is due. */
export interface ReplayCursor {
  readonly after: TaskId;
  readonly dueMs: number;
}

export function encodeReplayCursor({ after, dueMs }: ReplayCursor): string {
  return encodeCursor(`${after} ${Math.ceil(dueMs)}`);
}

export function decodeReplayCursor(cursor: string): ReplayCursor {
  const [after = '', due = ''] = decodeCursor(cursor).split(' ');
  if (!isUuid(after) || !/^\d{1,13}$/.test(due)) throw badCursor();
  return { after: after as TaskId, dueMs: Number(due) };
}
