import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { afterEach } from 'vitest';
import { quickWasm } from '../support/quick-wasm.js';
import { until } from '../support/until.js';

const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
const running = new Set<Example>();

afterEach(() => {
  for (const example of running) example.kill('SIGKILL');
});

export interface ExampleOptions {
  readonly args?: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** An example as a reader would start it, ended after the test at the latest. */
export function runExample(name: string, options: ExampleOptions = {}): Example {
  const flags = [quickWasm, ...(name.endsWith('.ts') ? ['--import', tsx] : [])];
  return new Example(process.execPath, flags, name, options);
}

export class Example {
  readonly lines: string[] = [];
  /** Resolves with its code when it is gone and its last line is here. */
  readonly exited: Promise<number | NodeJS.Signals>;
  readonly #child: ChildProcessByStdio<null, Readable, null>;

  constructor(command: string, flags: readonly string[], name: string, options: ExampleOptions) {
    const { args = [], cwd, env } = options;
    const file = join(import.meta.dirname, '../../examples', name);
    this.#child = spawn(command, [...flags, file, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, OPENAI_API_KEY: '', OPENAI_BASE_URL: '', NO_PROXY: '*', ...env },
      ...(cwd === undefined ? {} : { cwd }),
    });
    createInterface({ input: this.#child.stdout }).on('line', (line) => this.lines.push(line));
    running.add(this);
    this.exited = once(this.#child, 'close').then(([code, signal]) => {
      running.delete(this);
      return (code ?? signal) as number | NodeJS.Signals;
    });
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  untilLine(wanted: string | RegExp, times = 1): Promise<unknown> {
    const matches = (line: string) => line.search(wanted) >= 0;
    return until(`a line like ${String(wanted)}`, () => this.lines.filter(matches).length >= times);
  }
}
