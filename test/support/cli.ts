import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, inject } from 'vitest';
import { quickWasm } from './quick-wasm.js';
import { until } from './until.js';

const main = join(import.meta.dirname, '../../dist/cli/main.js');
const running = new Set<CliProcess>();

export interface CliExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface CliOptions {
  /** On top of this process's own environment; undefined removes a variable. */
  env?: Record<string, string | undefined>;
  cwd?: string;
}

/** `sluice …args` as a real process, ended with all its children after the test at the latest. */
export function startCli(args: string[], options: CliOptions = {}): CliProcess {
  if (inject('distIsStale')) throw new Error('dist is older than src: npm run build');
  return new CliProcess(args, options);
}

/** Runs `sluice …args` to its end. */
export async function runCli(
  args: string[],
  options: CliOptions = {},
): Promise<CliExit & { stdout: string; stderr: string }> {
  const cli = startCli(args, options);
  const exit = await cli.exited;
  return { ...exit, stdout: cli.stdout.join('\n'), stderr: cli.stderr.join('\n') };
}

export class CliProcess {
  readonly stdout: string[] = [];
  readonly stderr: string[] = [];
  /** Resolves when the process is gone and its last line is here; never rejects. */
  readonly exited: Promise<CliExit>;
  readonly #child: ChildProcessByStdio<null, Readable, Readable>;
  readonly #command: string;
  #exit: CliExit | null = null;

  constructor(args: string[], { env, cwd }: CliOptions) {
    this.#command = ['sluice', ...args].join(' ');
    this.#child = spawn(process.execPath, [quickWasm, main, ...args], {
      // A group of its own, so that its children can be found when it was killed before them.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      // What REDIS_URL names here is for the tests; who is to use it is told so.
      env: {
        ...process.env,
        REDIS_URL: undefined,
        NO_COLOR: '1',
        SLUICE_DRAIN_MS: '0',
        FORCE_COLOR: undefined,
        ...env,
      },
      ...(cwd === undefined ? {} : { cwd }),
    });
    collectLines(this.#child.stdout, this.stdout);
    collectLines(this.#child.stderr, this.stderr);
    running.add(this);
    this.exited = this.#waitForExit();
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error(`${this.#command} was not started`);
    return this.#child.pid;
  }

  /** Sends the signal to this process alone and waits until it is gone. */
  async kill(signal: NodeJS.Signals): Promise<CliExit> {
    this.#child.kill(signal);
    return this.exited;
  }

  /** The match of the first line, on either stream, printed so far or still to come. */
  async waitForLine(pattern: RegExp): Promise<RegExpExecArray> {
    const found = await until(
      `a line like ${pattern} from ${this.#command}`,
      () => this.#findLine(pattern) ?? this.#exit,
    ).catch((cause: unknown) => {
      throw new Error(this.#story(`printed no line like ${pattern} in time`), { cause });
    });
    if (Array.isArray(found)) return found;
    throw new Error(this.#story(`ended without a line like ${pattern}`));
  }

  /** Its whole process group, at once. For when the test is over. */
  endGroup(): void {
    running.delete(this);
    try {
      process.kill(-this.pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }

  async #waitForExit(): Promise<CliExit> {
    const closed = once(this.#child, 'close');
    const [code, signal] = (await once(this.#child, 'exit')) as [
      CliExit['code'],
      CliExit['signal'],
    ];
    // The pipes close after the last line, but a child that outlives a killed parent holds them.
    await Promise.race([closed, delay(200)]);
    this.#exit = { code, signal };
    return this.#exit;
  }

  #findLine(pattern: RegExp): RegExpExecArray | null {
    for (const line of [...this.stdout, ...this.stderr]) {
      const match = pattern.exec(line);
      if (match) return match;
    }
    return null;
  }

  #story(happened: string): string {
    return [`${this.#command} ${happened}`, ...this.stdout, ...this.stderr].join('\n');
  }
}

function collectLines(stream: Readable, lines: string[]): void {
  createInterface({ input: stream }).on('line', (line) => lines.push(line));
}

afterEach(async () => {
  const ending = [...running];
  endAll();
  await Promise.all(ending.map((cli) => cli.exited));
});

// The test runner ends its workers with a signal, or just goes away: no hook runs then.
process.once('exit', endAll);
process.once('SIGTERM', () => process.exit(143));
process.once('disconnect', endAll);

function endAll(): void {
  for (const cli of running) cli.endGroup();
}
