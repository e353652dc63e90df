import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

const probeEveryMs = 200;
/** For no worker. */
const never = { task_type: 'never', parameters: {} };

/** What a call failed with. */
export interface Failure {
  readonly url: string;
  readonly why: string;
}

/**
 * Callers behind a load balancer: each keeps its connections and calls one server after the other, of those
 * whose `/readyz` answered 200 when it was last asked.
 */
export class Callers {
  readonly failures: Failure[] = [];
  answered = 0;
  readonly #urls: readonly string[];
  readonly #task: object;
  readonly #agents: readonly Agent[];
  readonly #ready = new Set<string>();
  readonly #used = new Set<string>();
  readonly #working: Promise<unknown>;
  #isStopping = false;

  constructor(urls: readonly string[], callers: number, task: object = never) {
    this.#urls = urls;
    this.#task = task;
    this.#agents = Array.from({ length: callers }, () => new Agent({ keepAlive: true }));
    const calling = this.#agents.map((agent) => this.#call(agent));
    this.#working = Promise.all([this.#probe(), ...calling]);
  }

  /** Since it was last not ready. */
  isUsed(url: string): boolean {
    return this.#used.has(url);
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#working;
    for (const agent of this.#agents) agent.destroy();
  }

  async #probe(): Promise<void> {
    const agent = new Agent();
    while (!this.#isStopping) {
      await Promise.all(
        this.#urls.map(async (url) => {
          const isReady = (await send(agent, url, 'GET', '/readyz').catch(() => 0)) === 200;
          if (isReady) this.#ready.add(url);
          else for (const known of [this.#ready, this.#used]) known.delete(url);
        }),
      );
      await delay(probeEveryMs);
    }
  }

  async #call(agent: Agent): Promise<void> {
    for (let turn = 0; !this.#isStopping; turn += 1) {
      const ready = [...this.#ready];
      const url = ready[turn % ready.length];
      if (url === undefined) await delay(probeEveryMs / 10);
      else await this.#submit(agent, url);
      await delay(1);
    }
  }

  async #submit(agent: Agent, url: string): Promise<void> {
    try {
      const status = await send(agent, url, 'POST', '/api/v1/tasks', this.#task);
      this.answered += 1;
      this.#used.add(url);
      if (status >= 300) this.failures.push({ url, why: String(status) });
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      this.failures.push({ url, why: `${code ?? ''} ${message}` });
    }
  }
}

function send(
  agent: Agent,
  url: string,
  method: string,
  path: string,
  body?: object,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    const sent = request(`${url}${path}`, { agent, method, headers }, (response) => {
      response.on('error', reject).on('end', () => resolve(response.statusCode ?? 0));
      response.resume();
    });
    sent.on('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
