import { spawnSync } from 'node:child_process';
import { getServerProgram } from './server-program.js';

/** What `promtool check metrics` says against a page of metrics; empty: nothing. */
export function lintMetrics(text: string): string {
  const promtool = getServerProgram({
    program: 'promtool',
    folders: () => ['/usr/local/bin', '/opt/homebrew/bin'],
    debianPackage: 'prometheus',
    remedy:
      'The tests need promtool: sudo apt-get install prometheus (or: brew install prometheus).',
  });
  const { stdout, stderr, error } = spawnSync(promtool, ['check', 'metrics'], {
    input: text,
    encoding: 'utf8',
  });
  if (error !== undefined) throw error;
  return `${stdout}${stderr}`.trim();
}
