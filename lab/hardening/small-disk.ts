import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const piece = Buffer.alloc(64 * 1024);

/** A file system of its own, small enough to fill. Only root may mount one. */
export class SmallDisk implements Disposable {
  readonly path: string;

  /** For whom the folder `like` belongs to. */
  constructor(megabytes: number, like: string) {
    const { uid, gid } = statSync(like);
    this.path = mkdtempSync(join(tmpdir(), 'sluice-disk-'));
    const options = `size=${megabytes}m,uid=${uid},gid=${gid},mode=0700`;
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', this.path], { stdio: 'pipe' });
    } catch (error) {
      rmdirSync(this.path);
      throw new Error('A small disk could not be mounted: run this scenario as root.', {
        cause: error,
      });
    }
  }

  fill(): void {
    const file = openSync(this.#ballast, 'w');
    try {
      for (;;) writeSync(file, piece);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    } finally {
      closeSync(file);
    }
  }

  free(): void {
    rmSync(this.#ballast, { force: true });
  }

  [Symbol.dispose](): void {
    execFileSync('umount', ['-l', this.path], { stdio: 'pipe' });
    rmdirSync(this.path);
  }

  get #ballast(): string {
    return join(this.path, 'ballast');
  }
}
