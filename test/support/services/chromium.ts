import { chromium, type Browser } from 'playwright-core';
import { isRoot } from './unprivileged-user.js';
import { getServerProgram } from './server-program.js';

/** The machine's own browser, without a window. */
export function startChromium(): Promise<Browser> {
  const executablePath = getServerProgram({
    program: 'chromium',
    folders: () => ['/usr/bin', '/snap/bin', '/opt/homebrew/bin'],
    debianPackage: 'chromium',
    remedy:
      'The tests need Chromium: sudo apt-get install chromium (or: brew install --cask chromium).',
  });
  // Its sandbox refuses to start for root.
  return chromium.launch({ executablePath, args: isRoot ? ['--no-sandbox'] : [] });
}
