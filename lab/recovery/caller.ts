import { setTimeout as delay } from 'node:timers/promises';

const lanes = 8;
const betweenMs = 10;
const patienceMs = 1_000;

/** Submits all the time, each task until it is acknowledged, and writes down every answer. */
export class Caller {
  readonly acknowledged = new Map<string, number>();
  /** 503 with Retry-After. */
  refused = 0;
  /** Any other answer, or none: by what it was. */
  readonly others = new Map<string, number>();
  readonly #url: string;
  readonly #stepMs: number;
  readonly #running: Promise<unknown>;
  #isStopping = false;

  constructor(url: string, stepMs: number) {
    this.#url = `${url}/api/v1/tasks`;
    this.#stepMs = stepMs;
    this.#running = Promise.all(Array.from({ length: lanes }, (_, lane) => this.#call(lane)));
  }

  /** Nothing that was begun is left without an acknowledgement. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#running;
  }

  async #call(lane: number): Promise<void> {
    for (let n = 0; !this.#isStopping; n += 1) {
      while (!(await this.#submit(`${lane}-${n}`))) await delay(patienceMs);
      await delay(betweenMs);
    }
  }

  async #submit(key: string): Promise<boolean> {
    const body = { task_type: 'step', parameters: { ms: this.#stepMs }, idempotency_key: key };
    try {
      const response = await fetch(this.#url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      const answer = (await response.json()) as { readonly task_id?: string };
      if (response.ok && answer.task_id !== undefined) {
        this.acknowledged.set(answer.task_id, Date.now());
        return true;
      }
      if (response.status === 503 && response.headers.has('retry-after')) this.refused += 1;
      else this.#noteOther(String(response.status));
    } catch (error) {
      this.#noteOther((error as Error).message);
    }
    return false;
  }

  #noteOther(what: string): void {
    this.others.set(what, (this.others.get(what) ?? 0) + 1);
  }
}
