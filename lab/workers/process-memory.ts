import { readFileSync } from 'node:fs';

/** `VmRSS`: what it uses now; `VmHWM`: the most it ever used. */
export function processMegabytes(pid: number, what: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const [, kilobytes = 'NaN'] = new RegExp(`^${what}:\\s+(\\d+) kB`, 'm').exec(status) ?? [];
  return Number(kilobytes) / 1024;
}
