import { execFileSync } from 'node:child_process';

export interface UserIds {
  uid: number;
  gid: number;
}

export const isRoot = process.getuid?.() === 0;

/** Servers refuse to run as root, or should: the first of these users that exists runs them. */
export function unprivilegedUser(...names: string[]): UserIds | undefined {
  if (!isRoot) return undefined;
  for (const name of [...names, 'nobody']) {
    const uid = idOf('-u', name);
    const gid = idOf('-g', name);
    if (uid !== undefined && gid !== undefined) return { uid, gid };
  }
  throw new Error(`None of the users ${[...names, 'nobody'].join(', ')} exists`);
}

function idOf(flag: string, name: string): number | undefined {
  try {
    return Number(execFileSync('id', [flag, name], { encoding: 'utf8', stdio: 'pipe' }));
  } catch {
    return undefined;
  }
}
