import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { runCli, startCli } from '../support/cli.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { TerminalWindow } from '../support/services/tmux.js';
import { until } from '../support/until.js';

const main = join(import.meta.dirname, '../../dist/cli/main.js');
const leftAlternateScreen = '\x1b[?1049l';

describe('sluice top', () => {
  const databases: TestDatabase[] = [];
  afterAll(() => Promise.all(databases.map((database) => database.drop())));

  it('R-OB6: is live in a terminal, outlives its server, and leaves the terminal as it was', async () => {
    const database = await createTestDatabase();
    databases.push(database);
    const args = ['serve', '--database-url', database.url, '--log-level', 'warn'];
    const server = startCli([...args, '--port', '0']);
    const [, url = ''] = await server.waitForLine(/^Sluice is ready at (http:\S+)$/);
    const submitted = await runCli(['submit', 'hello', '--queue', 'greetings', '--url', url]);
    expect(submitted.code).toBe(0);

    const printed = await runCli(['top', '--url', url]);
    expect(printed).toMatchObject({ code: 0, stderr: '' });
    expect(printed.stdout).toContain('No worker is active, and 1 task waits.');
    expect(printed.stdout).toMatch(/^greetings +1 /m);

    // A terminal of its own: keys and the alternate screen need one.
    const top = spawn('script', [
      '-qec',
      `${process.execPath} ${main} top --url ${url}`,
      '/dev/null',
    ]);
    let screen = '';
    top.stdout.setEncoding('utf8').on('data', (text: string) => (screen += text));
    try {
      await until('the queue on the screen', () => /greetings +1 /.test(plain(screen)));
      await server.kill('SIGKILL');
      await until('the server to be missed', () => plain(screen).includes("can't be reached"));
      screen = '';
      startCli([...args, '--port', new URL(url).port]);
      await until('the server to be back', () => /greetings +1 /.test(plain(screen)));
      expect(screen).not.toContain(leftAlternateScreen);
      top.stdin.write('q');
      const [code] = (await once(top, 'exit')) as [number];
      expect(code).toBe(0);
      expect(screen.endsWith(leftAlternateScreen)).toBe(true);
    } finally {
      top.kill('SIGKILL');
    }
  });

  it('R-OB6: fits its terminal when that is resized, and leaves it with q', async () => {
    const database = await createTestDatabase();
    databases.push(database);
    const args = ['serve', '--database-url', database.url, '--log-level', 'warn', '--port', '0'];
    const server = startCli(args);
    const [, url = ''] = await server.waitForLine(/^Sluice is ready at (http:\S+)$/);
    for (const queue of ['greetings', 'reports', 'thumbnails']) {
      expect((await runCli(['submit', 'hello', '--queue', queue, '--url', url])).code).toBe(0);
    }
    const ended = 'top has ended with';
    const command = `${process.execPath} ${main} top --url ${url}; echo ${ended} $?; cat`;
    const terminal = new TerminalWindow(command, { columns: 110, rows: 30 });
    try {
      const fits = (columns: number, rows: number) => {
        const { lines } = terminal;
        // The keys are in its last line, and nothing has scrolled its first one away.
        return (
          lines.length === rows &&
          lines[0]?.startsWith('sluice top') === true &&
          lines.at(-1)?.startsWith('q quit') === true &&
          lines.some((line) => line.startsWith('greetings')) &&
          lines.every((line) => line.length <= columns)
        );
      };
      for (const [columns, rows] of [
        [110, 30],
        [48, 16],
        [140, 40],
      ] as const) {
        terminal.resize(columns, rows);
        await until(`it to fill ${columns} × ${rows}`, () => fits(columns, rows));
        expect(terminal.lines.filter((line) => /^queue\b/.test(line))).toHaveLength(1);
      }
      terminal.press('s');
      await until('another order', () => terminal.lines.at(-1)?.includes('by waiting') === false);
      terminal.press('q');
      await until('the line behind it', () => terminal.lines.includes(`${ended} 0`));
      expect(terminal.lines.some((line) => line.includes('greetings'))).toBe(false);
    } finally {
      terminal.close();
    }
  });
});

function plain(screen: string): string {
  return stripVTControlCharacters(screen);
}
