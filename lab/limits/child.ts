import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** What all children say: where to look when something went wrong. */
const logFolder = join(import.meta.dirname, '../results');
const logPath = join(logFolder, 'processes.log');
mkdirSync(logFolder, { recursive: true });
const errorLinesKept = 20;

export interface ChildOptions {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A Node process that ends when this one does, however that ends: its channel closes then. */
export class Child {
  /** The first line it printed: all of them say so when they are ready. */
  readonly ready: Promise<string>;
  readonly #process: ChildProcess;
  readonly #gone: Promise<unknown>;
  readonly #errors: string[] = [];

  constructor({ args, env }: ChildOptions) {
    this.#process = spawn(process.execPath, args, {
      env: { ...withoutSettings(process.env), ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    this.#gone = once(this.#process, 'exit');
    this.ready = Promise.race([this.#firstLine(), this.#endedTooSoon(args)]);
    this.ready.catch(() => undefined);
    this.#keepErrors();
  }

  get pid(): number {
    const { pid } = this.#process;
    if (pid === undefined) throw new Error('The child was not started');
    return pid;
  }

  async kill(): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#gone;
  }

  async stop(): Promise<void> {
    if (this.#process.connected) this.#process.disconnect();
    await this.#gone;
  }

  async #firstLine(): Promise<string> {
    const { stdout } = this.#process;
    if (stdout === null) throw new Error('The child has no pipe');
    const [line] = (await once(createInterface({ input: stdout }), 'line')) as [string];
    if (!/\bready\b/.test(line)) throw new Error(`It is not ready: ${line}`);
    return line;
  }

  async #endedTooSoon(args: readonly string[]): Promise<never> {
    await this.#gone;
    throw new Error([`node ${args.join(' ')} ended:`, ...this.#errors].join('\n'));
  }

  #keepErrors(): void {
    const { stderr } = this.#process;
    if (stderr === null) return;
    createInterface({ input: stderr }).on('line', (line) => {
      appendFileSync(logPath, `${this.#process.pid} ${line}\n`);
      this.#errors.push(line);
      if (this.#errors.length > errorLinesKept) this.#errors.shift();
    });
  }
}

/** What this shell says about a server of the user's is not meant for ours. */
function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const ofUser = (name: string) =>
    name === 'DATABASE_URL' || name === 'REDIS_URL' || name.startsWith('SLUICE_');
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ofUser(name)));
}
