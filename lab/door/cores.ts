import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism, setPriority } from 'node:os';
import { parentOf } from '../shared/process-tree.js';

/**
 * The server, with Postgres, is on the first cores, the worker on another and the load on the last, as
 * if each came from another machine. Of two cores the load is on the worker's and takes what it leaves.
 */
const cores = availableParallelism();
const last = cores - 1;
const ofWorkers = cores > 2 ? last - 1 : last;
const lists = {
  server: ofWorkers === 1 ? '0' : `0-${ofWorkers - 1}`,
  workers: String(ofWorkers),
  load: String(last),
} as const;

/** False where the system does not let us: it then runs on any core. */
export function putOnCore(whose: keyof typeof lists, pids: readonly number[]): boolean {
  if (cores === 1) return false;
  return pids.every((pid) => {
    const { status } = spawnSync('taskset', ['-acp', lists[whose], String(pid)]);
    return status === 0 || parentOf(pid) === null;
  });
}

/**
 * Where the load has no core of its own: from another machine it would take nothing from the worker. It
 * still tells how late it was.
 */
export function letOthersFirst(pid: number): void {
  if (lists.load === lists.workers) setPriority(pid, 10);
}

/**
 * The parent of this backend and all its children; what it starts later runs where it does. Empty
 * where Postgres is elsewhere.
 */
export function postgresPids(backend: number): readonly number[] {
  const postmaster = parentOf(backend);
  if (postmaster === null || !isPostgres(postmaster)) return [];
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return [postmaster, ...all.map(Number).filter((pid) => parentOf(pid) === postmaster)];
}

function isPostgres(pid: number): boolean {
  return readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('postgres');
}
