import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { DataFolderInUseError, lockDataFolder } from './data-folder-lock.js';

describe('lockDataFolder', () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'sluice-lock-'))));
  afterEach(() => rmSync(folder, { recursive: true }));

  it('refuses a second holder, also in the same process, until the first lets go', () => {
    const unlock = lockDataFolder(folder);
    expect(() => lockDataFolder(folder)).toThrow(DataFolderInUseError);
    unlock();
    unlock();
    lockDataFolder(folder)();
  });

  it('refuses while the process named in it lives, with a sentence that names it', () => {
    writeFileSync(join(folder, 'lock'), String(process.ppid));
    expect(() => lockDataFolder(folder)).toThrow(`in use by process ${process.ppid}`);
    expect(readFileSync(join(folder, 'lock'), 'utf8')).toBe(String(process.ppid));
  });

  it('takes over from a process that is dead', () => {
    const dead = spawnSync(process.execPath, ['-e', '']).pid;
    writeFileSync(join(folder, 'lock'), String(dead));
    const unlock = lockDataFolder(folder);
    expect(readFileSync(join(folder, 'lock'), 'utf8')).toBe(String(process.pid));
    unlock();
  });

  it('takes over from an earlier process with the same number, as in a container', () => {
    writeFileSync(join(folder, 'lock'), String(process.pid));
    lockDataFolder(folder)();
  });
});
