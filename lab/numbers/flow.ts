import { setTimeout as delay } from 'node:timers/promises';

interface Claimed {
  readonly task_id: string;
  readonly lease: string;
}

const batchMs = 50;

/** Submits and completes tasks at a rate, over HTTP, in random queues. */
export class Flow {
  readonly #url: string;
  #isOver = false;
  #completed = 0;
  #submitted = 0;

  constructor(url: string) {
    this.#url = url;
  }

  get counts(): { readonly submitted: number; readonly completed: number } {
    return { submitted: this.#submitted, completed: this.#completed };
  }

  end(): void {
    this.#isOver = true;
  }

  async run(rate: number, queues: number): Promise<void> {
    const { worker_id: id } = await this.post<{ worker_id: string }>('/internal/workers/register', {
      capacity: 10_000,
    });
    await Promise.all([this.#submit(rate, queues), this.#complete(id, rate), this.#beat(id)]);
  }

  async #submit(rate: number, queues: number): Promise<void> {
    await this.#paced(rate, async (some) => {
      const tasks = Array.from({ length: some }, () => ({
        task_type: 'noop',
        queue: `queue-${Math.floor(Math.random() * queues)}`,
        parameters: {},
      }));
      await this.post('/api/v1/tasks/batch', { tasks });
      this.#submitted += some;
    });
  }

  async #complete(id: string, rate: number): Promise<void> {
    await this.#paced(rate, async (some) => {
      const poll = { available_capacity: some, wait_seconds: 1 };
      const path = `/internal/workers/${id}`;
      const { tasks } = await this.post<{ tasks: readonly Claimed[] }>(`${path}/poll`, poll);
      if (tasks.length === 0) return;
      const results = tasks.map(({ task_id, lease }) => ({ task_id, lease, status: 'completed' }));
      await this.post(`${path}/result`, { results });
      this.#completed += tasks.length;
    });
  }

  async #beat(id: string): Promise<void> {
    const beat = { current_load: 0, status: 'active' };
    while (!this.#isOver) {
      await this.post(`/internal/workers/${id}/heartbeat`, beat);
      await delay(1_000);
    }
  }

  /** One call after the other, each with as many as are due by then. */
  async #paced(rate: number, act: (some: number) => Promise<void>): Promise<void> {
    const beganMs = performance.now();
    let done = 0;
    while (!this.#isOver) {
      await delay(batchMs);
      const due = Math.floor(((performance.now() - beganMs) * rate) / 1000) - done;
      const some = Math.min(due, rate);
      if (some <= 0) continue;
      await act(some);
      done += some;
    }
  }

  async post<Answer>(path: string, body: object): Promise<Answer> {
    const answer = await fetch(`${this.#url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${path}: ${String(answer.status)} ${await answer.text()}`);
    return (await answer.json()) as Answer;
  }
}
