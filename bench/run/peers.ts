import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = join(import.meta.dirname, '../peers');
const installed = join(folder, 'node_modules');

/** Peers are in a package of their own: whoever does not run the benchmark never installs them. */
export function installPeers(): void {
  if (Object.entries(peerVersions()).every(([name, version]) => findInstalled(name) === version))
    return;
  console.error('Installing the peers into bench/peers …');
  const { status } = spawnSync('npm', ['ci', '--no-fund', '--no-audit', '--loglevel=error'], {
    cwd: folder,
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('The peers could not be installed: npm ci in bench/peers');
}

/** By name; each is pinned. */
export function peerVersions(): Readonly<Record<string, string>> {
  const text = readFileSync(join(folder, 'package.json'), 'utf8');
  return (JSON.parse(text) as { dependencies: Record<string, string> }).dependencies;
}

function findInstalled(name: string): string | null {
  const path = join(installed, name, 'package.json');
  if (!existsSync(path)) return null;
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
}

/** One and the same for all contenders: the one that came with the peers, some of which need it. */
export function findNode(): string {
  const own = join(installed, `node-${process.platform}-${process.arch}`, 'bin/node');
  if (existsSync(own)) return own;
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 18)) return process.execPath;
  throw new Error('The peers need Node 22.18 or later: name one with --node PATH');
}

export function versionOf(node: string): string {
  const { stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' });
  return stdout.trim().replace(/^v/, '');
}
