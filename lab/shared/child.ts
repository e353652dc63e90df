import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** What all children say: where to look when something went wrong. */
const logFolder = join(import.meta.dirname, '../results');
const logPath = join(logFolder, 'processes.log');
mkdirSync(logFolder, { recursive: true });
const errorLinesKept = 1_000;

/** One that is frozen does not notice that its channel closed. */
const living = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of living) child.kill('SIGKILL');
});

export interface ChildOptions {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A file that it logs to by itself, since a pipe has somebody at the other end; absent: a pipe. */
  readonly logFile?: number;
}

export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A Node process that ends when this one does, however that ends: its channel closes then. */
export class Child {
  /** The line in which it says so. A server may stand by for a while before. */
  readonly ready: Promise<string>;
  readonly exited: Promise<ChildExit>;
  readonly #process: ChildProcess;
  readonly #errors: string[] = [];
  readonly #saidAll: Promise<void>;

  constructor({ args, env, logFile }: ChildOptions) {
    this.#process = spawn(process.execPath, args, {
      env: { ...withoutSettings(process.env), ...env },
      stdio: ['ignore', 'pipe', logFile ?? 'pipe', 'ipc'],
    });
    this.exited = this.#untilGone();
    this.#saidAll = this.#keepErrors();
    this.ready = Promise.race([this.#readyLine(), this.#endedTooSoon(args)]);
    this.ready.catch(() => undefined);
  }

  get pid(): number {
    const { pid } = this.#process;
    if (pid === undefined) throw new Error('The child was not started');
    return pid;
  }

  /** What it logged last. */
  get errors(): readonly string[] {
    return this.#errors;
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /** Over its channel, of something in it that answers there. */
  async ask(question: string): Promise<unknown> {
    const answered = once(this.#process, 'message');
    this.#process.send(question);
    const [answer] = (await Promise.race([answered, this.#leftUnanswered()])) as [unknown];
    return answer;
  }

  /** SIGTERM. An open channel would hold a process that has stopped by itself. */
  async terminate(): Promise<ChildExit> {
    this.signal('SIGTERM');
    if (this.#process.connected) this.#process.disconnect();
    return this.exited;
  }

  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.exited;
  }

  async stop(): Promise<void> {
    if (this.#process.connected) this.#process.disconnect();
    await this.exited;
  }

  async #untilGone(): Promise<ChildExit> {
    living.add(this.#process);
    const [code, signal] = (await once(this.#process, 'exit')) as [
      ChildExit['code'],
      ChildExit['signal'],
    ];
    living.delete(this.#process);
    return { code, signal };
  }

  #readyLine(): Promise<string> {
    const { stdout } = this.#process;
    if (stdout === null) throw new Error('The child has no pipe');
    return new Promise((resolve) => {
      createInterface({ input: stdout }).on('line', (line) => {
        if (/\bready\b/.test(line)) resolve(line);
      });
    });
  }

  async #leftUnanswered(): Promise<never> {
    await this.exited;
    throw new Error('The child ended before it answered');
  }

  async #endedTooSoon(args: readonly string[]): Promise<never> {
    await this.exited;
    await this.#saidAll;
    throw new Error([`node ${args.join(' ')} ended:`, ...this.#errors.slice(-20)].join('\n'));
  }

  /** Resolves when its last line is here, which may be after its end. */
  async #keepErrors(): Promise<void> {
    const { stderr } = this.#process;
    if (stderr === null) return;
    const lines = createInterface({ input: stderr }).on('line', (line) => {
      appendFileSync(logPath, `${this.#process.pid} ${line}\n`);
      this.#errors.push(line);
      if (this.#errors.length > errorLinesKept) this.#errors.shift();
    });
    await once(lines, 'close');
  }
}

/** What this shell says about a server of the user's is not meant for ours. */
function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const ofUser = (name: string) =>
    name === 'DATABASE_URL' || name === 'REDIS_URL' || name.startsWith('SLUICE_');
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ofUser(name)));
}
