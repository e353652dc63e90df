import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

import type { Job, Outcome } from './job.js';

const childPath = join(import.meta.dirname, 'child.ts');

export interface CrewOptions {
  readonly processes: number;
  /** The file of a data image to begin with, which saves seconds. */
  readonly image?: string;
}

/** Processes that each live through one seed after the other. */
export class Crew implements AsyncDisposable {
  readonly #idle: ChildProcess[];
  readonly #all: readonly ChildProcess[];
  readonly #waiting: ((child: ChildProcess) => void)[] = [];

  private constructor(children: readonly ChildProcess[]) {
    this.#all = children;
    this.#idle = [...children];
  }

  static async open({ processes, image }: CrewOptions): Promise<Crew> {
    const children = Array.from({ length: processes }, () =>
      fork(childPath, image === undefined ? [] : [image], { execArgv: ['--import', 'tsx'] }),
    );
    await Promise.all(children.map((child) => nextMessage(child)));
    return new Crew(children);
  }

  /** At most as many at once as there are processes; the others wait. */
  async do(job: Partial<Job> & Pick<Job, 'seed' | 'steps'>): Promise<Outcome> {
    const child = await this.#take();
    try {
      const plain = { kind: 'run', without: [], trace: false, sabotage: null } as const;
      child.send({ ...plain, ...job });
      return (await nextMessage(child)) as Outcome;
    } finally {
      this.#giveBack(child);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const running = this.#all.filter(
      ({ exitCode, signalCode }) => (exitCode ?? signalCode) === null,
    );
    const ended = running.map((child) => once(child, 'exit'));
    for (const child of running) child.disconnect();
    await Promise.all(ended);
  }

  async #take(): Promise<ChildProcess> {
    return this.#idle.shift() ?? new Promise((resolve) => this.#waiting.push(resolve));
  }

  #giveBack(child: ChildProcess): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(child);
    else next(child);
  }
}

async function nextMessage(child: ChildProcess): Promise<unknown> {
  const ended = new AbortController();
  try {
    const [message] = (await Promise.race([
      once(child, 'message', { signal: ended.signal }),
      once(child, 'exit', { signal: ended.signal }).then(() => {
        throw new Error('a process of the simulation ended in the middle of its work');
      }),
    ])) as [unknown];
    return message;
  } finally {
    ended.abort();
  }
}
