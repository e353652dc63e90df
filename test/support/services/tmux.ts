import { randomBytes } from 'node:crypto';
import { runProgram } from './run-program.js';

/** A program in a terminal that a test looks at and resizes, as a person would. */
export class TerminalWindow {
  readonly #socket = `sluice-${randomBytes(4).toString('hex')}`;

  constructor(command: string, size: { readonly columns: number; readonly rows: number }) {
    const { columns, rows } = size;
    this.#tmux('new-session', '-d', '-x', String(columns), '-y', String(rows), command);
    this.#tmux('set-option', '-g', 'status', 'off');
  }

  /** What it shows now, line by line. */
  get lines(): readonly string[] {
    return this.#tmux('capture-pane', '-p').replace(/\n$/, '').split('\n');
  }

  get isOpen(): boolean {
    return this.#try('has-session').ok;
  }

  resize(columns: number, rows: number): void {
    this.#tmux('resize-window', '-x', String(columns), '-y', String(rows));
  }

  press(...keys: readonly string[]): void {
    this.#tmux('send-keys', ...keys);
  }

  close(): void {
    this.#try('kill-server');
  }

  #tmux(...args: readonly string[]): string {
    const { ok, stdout, output } = this.#try(...args);
    if (!ok) throw new Error(`tmux ${args.join(' ')}: ${output}`);
    return stdout;
  }

  #try(...args: readonly string[]) {
    const program = { program: 'tmux', debianPackage: 'tmux' };
    const env = { TERM: 'xterm-256color', LC_ALL: 'C.UTF-8' };
    return runProgram(program, ['-L', this.#socket, '-f', '/dev/null', ...args], { env });
  }
}
