import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** What processes have used, by the account of Linux. Elsewhere nothing is told. */
const isTold = existsSync('/proc/self/stat');
/** The kernel counts CPU time for others in hundredths of a second, whatever it ticks at itself. */
const ticksPerSecond = 100;
const kilobytesPerMegabyte = 1024;

interface Stat {
  readonly pid: number;
  readonly parent: number;
  readonly ticks: number;
}

/** Processes by their first one: it, its children, and theirs. */
export class ProcessTree {
  readonly #root: number | null;

  constructor(root: number | null) {
    this.#root = isTold ? root : null;
  }

  /** Also of children that have ended. */
  cpuSeconds(): number {
    if (this.#root === null) return Number.NaN;
    return sum(this.#members().map(({ ticks }) => ticks)) / ticksPerSecond;
  }

  /** What each of them ever held at most, together. */
  peakMegabytes(): number {
    if (this.#root === null) return Number.NaN;
    return sum(this.#statuses().map(({ peak }) => peak)) / kilobytesPerMegabyte;
  }

  /** Now. What they share counts once. */
  megabytes(): number {
    if (this.#root === null) return Number.NaN;
    const statuses = this.#statuses();
    const mostShared = Math.max(0, ...statuses.map(({ shared }) => shared));
    return (sum(statuses.map(({ own }) => own)) + mostShared) / kilobytesPerMegabyte;
  }

  #statuses(): readonly Status[] {
    return this.#members().flatMap(({ pid }) => readStatus(pid) ?? []);
  }

  #members(): readonly Stat[] {
    const all = readAll();
    const members = all.filter(({ pid }) => pid === this.#root);
    for (const member of members) {
      members.push(...all.filter(({ parent }) => parent === member.pid));
    }
    return members;
  }
}

/** In kilobytes. */
interface Status {
  readonly peak: number;
  readonly own: number;
  readonly shared: number;
}

function readAll(): readonly Stat[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => readStat(Number(pid)) ?? []);
}

export function parentOf(pid: number): number | null {
  return isTold ? (readStat(pid)?.parent ?? null) : null;
}

/** Null: it ended while we looked. */
function readStat(pid: number): Stat | null {
  const text = read(`/proc/${pid}/stat`);
  if (text === null) return null;
  // The name before it is in parentheses and may hold anything, also spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [, parent = Number.NaN] = fields.map(Number);
  return { pid, parent, ticks: sum(fields.slice(11, 15).map(Number)) };
}

function readStatus(pid: number): Status | null {
  const text = read(`/proc/${pid}/status`);
  if (text === null) return null;
  const kilobytes = (name: string) => {
    const [, value] = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text) ?? [];
    return Number(value ?? 0);
  };
  return {
    peak: kilobytes('VmHWM'),
    own: kilobytes('RssAnon'),
    shared: kilobytes('RssShmem'),
  };
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
