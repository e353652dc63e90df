import { SluiceError } from '../domain/errors.js';
import { isUuid, type TaskId, type WorkerId } from '../domain/ids.js';

/** For a list that is asked for without a limit. */
export const defaultPageLimit = 50;

/** Opaque to callers, so that what a list is sorted by may change. */
export function encodeCursor(key: string): string {
  return Buffer.from(key, 'utf8').toString('base64url');
}

export function decodeCursor(cursor: string): string {
  const key = Buffer.from(cursor, 'base64url').toString('utf8');
  // Decoding skips what it does not know: only what encodes back to itself was ours.
  if (key === '' || key.includes('\0') || encodeCursor(key) !== cursor) throw badCursor();
  return key;
}

export function decodeIdCursor(cursor: string): TaskId & WorkerId {
  const key = decodeCursor(cursor);
  if (!isUuid(key)) throw badCursor();
  return key as TaskId & WorkerId;
}

export function badCursor(): SluiceError {
  const message = 'is not a cursor that a list has answered with';
  return new SluiceError('invalid_request', `cursor ${message}`, {
    errors: [{ path: 'cursor', message }],
  });
}
