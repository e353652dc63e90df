import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const periodUs = 20_000;

interface Kind {
  readonly folder: string;
  readonly quota: (quotaUs: number) => Readonly<Record<string, string>>;
}

const second: Kind = {
  folder: '/sys/fs/cgroup',
  quota: (quotaUs) => ({ 'cpu.max': `${quotaUs} ${periodUs}` }),
};

const first: Kind = {
  folder: '/sys/fs/cgroup/cpu',
  quota: (quotaUs) => ({
    'cpu.cfs_period_us': String(periodUs),
    'cpu.cfs_quota_us': String(quotaUs),
  }),
};

/**
 * As if each process ran on a small machine of its own: it gets this share of one core and no more.
 * Answers with how to end it; null where the kernel does not let us.
 */
export function shareCpu(pids: readonly number[], share: number): (() => void) | null {
  const kind = existsSync('/sys/fs/cgroup/cgroup.controllers') ? second : first;
  const folders = new Map<number, string>();
  const end = () => {
    for (const [pid, folder] of folders) {
      writeFileSync(join(kind.folder, 'cgroup.procs'), String(pid));
      rmdirSync(folder);
    }
    folders.clear();
  };
  try {
    for (const pid of pids) {
      const folder = join(kind.folder, `sluice-lab-${pid}`);
      mkdirSync(folder);
      folders.set(pid, folder);
      const files = { ...kind.quota(share * periodUs), 'cgroup.procs': String(pid) };
      for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
    }
    return end;
  } catch {
    end();
    return null;
  }
}
