import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** The load runs on the last core and what it loads on all others, as if it came from another machine. */
const last = availableParallelism() - 1;
const forLoad = String(last);
const forSystem = last === 1 ? '0' : `0-${last - 1}`;

/** False where the system does not let us: both then share all cores. */
export function putOnSystemCores(pids: readonly number[]): boolean {
  return pids.every((pid) => put(pid, forSystem));
}

export function putOnLoadCore(pid: number): boolean {
  return put(pid, forLoad);
}

function put(pid: number, cores: string): boolean {
  if (last === 0) return false;
  return spawnSync('taskset', ['-acp', cores, String(pid)], { stdio: 'ignore' }).status === 0;
}

/** The parent of this backend and all its children; what it starts later runs where it does. */
export function postgresPids(backend: number): readonly number[] {
  const postmaster = parentOf(backend);
  if (postmaster === null) return [];
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return [postmaster, ...all.map(Number).filter((pid) => parentOf(pid) === postmaster)];
}

/** In seconds, since it began. */
export function cpuSecondsOf(pid: number): number {
  const fields = statOf(pid);
  return (Number(fields?.[11] ?? 0) + Number(fields?.[12] ?? 0)) / ticksPerSecond;
}

const ticksPerSecond = 100;

function parentOf(pid: number): number | null {
  const fields = statOf(pid);
  return fields === null ? null : Number(fields[1]);
}

/** From the state on; the name before it may hold anything. Null: there is no such process here. */
function statOf(pid: number): readonly string[] | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
}
