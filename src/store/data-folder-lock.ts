import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** Embedded Postgres would be destroyed by a second process writing to its files. */
export class DataFolderInUseError extends Error {
  override readonly name = 'DataFolderInUseError';
}

const heldHere = new Set<string>();

/** Holds the folder for this process. Answers with how to let go of it. */
export function lockDataFolder(folder: string): () => void {
  const path = join(resolve(folder), 'lock');
  if (heldHere.has(path)) throw inUse(folder, process.pid);
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, String(process.pid));
  try {
    while (!tryLink(draft, path)) {
      const holder = findHolder(path);
      if (holder !== null && isAlive(holder)) throw inUse(folder, holder);
      if (holder !== null) removeStale(path, holder);
    }
  } finally {
    rmSync(draft, { force: true });
  }
  heldHere.add(path);
  return () => {
    if (heldHere.delete(path)) rmSync(path, { force: true });
  };
}

/** A link appears whole, with the pid in it; a file would be empty for a moment. */
function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (isCode(error, 'EEXIST')) return false;
    throw error;
  }
}

function findHolder(path: string): number | null {
  try {
    return Number(readFileSync(path, 'utf8'));
  } catch (error) {
    if (isCode(error, 'ENOENT')) return null;
    throw error;
  }
}

/** A pid of ours that this process does not hold is that of a process before it, as in a container. */
function isAlive(pid: number): boolean {
  if (pid === process.pid || !Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !isCode(error, 'ESRCH');
  }
}

/** By a rename, which only one of two processes wins; what it moved must still be the stale one. */
function removeStale(path: string, holder: number): void {
  const moved = `${path}.stale.${process.pid}`;
  try {
    renameSync(path, moved);
  } catch (error) {
    if (isCode(error, 'ENOENT')) return;
    throw error;
  }
  if (findHolder(moved) !== holder) tryLink(moved, path);
  rmSync(moved, { force: true });
}

function inUse(folder: string, pid: number): DataFolderInUseError {
  return new DataFolderInUseError(
    `The data folder ${folder} is in use by process ${pid}: stop that one, or name another folder.`,
  );
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
