import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { CliError } from '../failure.js';

export interface ChildOptions {
  readonly args: readonly string[];
  /** No settings of the user's are near: neither in the folder nor in the environment. */
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Processes of this same program. They end when this one does, however it ends. */
export class Children {
  readonly #children = new Set<ChildProcess>();
  readonly #failing = new AbortController();

  /** Fires when a child ended that nobody told to; the reason says which and why. */
  get failed(): AbortSignal {
    return this.#failing.signal;
  }

  /** Resolves with the line that says it is ready. On a busy machine a server may first say that it is not. */
  async start({ args, cwd, env }: ChildOptions): Promise<string> {
    const child = spawn(process.execPath, [...process.execArgv, mainFile(), ...args], {
      cwd,
      env: { ...withoutSettings(process.env), ...env },
      // Through the channel it notices that this process is gone, and is told to stop.
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    const { stdout, stderr } = child;
    if (stdout === null || stderr === null) throw new Error('The child has no pipes');
    this.#children.add(child);
    const errors: string[] = [];
    createInterface({ input: stderr }).on('line', (line) => errors.push(line));
    const ended = once(child, 'exit').then(() => {
      const isUnexpected = this.#children.delete(child);
      const why = errors.slice(-5).join('\n');
      const failure = new CliError(`"sluice ${args.join(' ')}" ended too soon.\n${why}`);
      if (isUnexpected) this.#failing.abort(failure);
      throw failure;
    });
    const lines = createInterface({ input: stdout });
    const ready = new Promise<string>((resolve) => {
      lines.on('line', (line) => {
        if (line.includes(' is ready ')) resolve(line);
      });
    });
    ended.catch(() => undefined);
    return Promise.race([ready, ended]);
  }

  async stop(): Promise<void> {
    const children = [...this.#children];
    this.#children.clear();
    await Promise.all(
      children.map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const exited = once(child, 'exit');
        if (child.connected) child.disconnect();
        await exited;
      }),
    );
  }
}

function mainFile(): string {
  const [, main] = process.argv;
  if (main === undefined) throw new Error('This program has no file to start again');
  return main;
}

function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const others = Object.entries(env).filter(
    ([name]) => !['DATABASE_URL', 'REDIS_URL'].includes(name) && !name.startsWith('SLUICE_'),
  );
  return Object.fromEntries(others);
}
