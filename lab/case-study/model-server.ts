import { join } from 'node:path';
import { Child } from '../shared/child.js';

/** One call, by the clock of the server that was called. */
export interface Call {
  readonly task: number;
  readonly model: string;
  readonly attempt: number;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly status: number | null;
}

/** The stand-in for the models, in a process of its own. */
export class ModelServer implements AsyncDisposable {
  readonly url: string;
  readonly #process: Child;

  private constructor(url: string, process: Child) {
    this.url = url;
    this.#process = process;
  }

  static async start(): Promise<ModelServer> {
    const process = new Child({ args: [join(import.meta.dirname, 'model-server.mjs')] });
    const [url = ''] = /http:\S+/.exec(await process.ready) ?? [];
    return new ModelServer(url, process);
  }

  async log(): Promise<readonly Call[]> {
    return (await (await fetch(`${this.url}/log`)).json()) as readonly Call[];
  }

  async countDone(): Promise<number> {
    const { done } = (await (await fetch(`${this.url}/done`)).json()) as { done: number };
    return done;
  }

  /** 503 to what is under way and to all that comes. */
  async goAway(): Promise<void> {
    await fetch(`${this.url}/away`, { method: 'PUT' });
  }

  async comeBack(): Promise<void> {
    await fetch(`${this.url}/away`, { method: 'DELETE' });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.kill();
  }
}
