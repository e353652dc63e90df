import { setTimeout as delay } from 'node:timers/promises';

interface Claimed {
  readonly task_id: string;
  readonly lease: string;
}

const lanes = 8;
const batch = 100;

/** Submits and completes tasks over HTTP as fast as a server can, in lanes that each have a queue and a worker. */
export class Saturation {
  readonly #url: string;
  readonly #workers: readonly string[];
  #endsMs = 0;

  private constructor(url: string, workers: readonly string[]) {
    this.#url = url;
    this.#workers = workers;
  }

  static async at(url: string): Promise<Saturation> {
    const register = async (lane: number) => {
      const registration = { capacity: batch, queues: [`lane-${lane}`] };
      const path = '/internal/workers/register';
      return (await post<{ worker_id: string }>(url, path, registration)).worker_id;
    };
    return new Saturation(
      url,
      await Promise.all(Array.from({ length: lanes }, (_, n) => register(n))),
    );
  }

  /** Tasks that were completed in a second. */
  async run(seconds: number): Promise<number> {
    const beganMs = performance.now();
    this.#endsMs = beganMs + seconds * 1_000;
    const counts = await Promise.all(this.#workers.map((id, lane) => this.#drive(id, lane)));
    const completed = counts.reduce((sum, count) => sum + count, 0);
    return (completed * 1_000) / (performance.now() - beganMs);
  }

  /** Between its rounds too, so that its workers live. Answers with how to stop. */
  keepBeating(): () => Promise<void> {
    const stopping = new AbortController();
    const beating = (async () => {
      while (!stopping.signal.aborted) {
        const beat = { current_load: 0, status: 'active' };
        for (const id of this.#workers) await this.#post(`/internal/workers/${id}/heartbeat`, beat);
        await delay(2_000, null, { signal: stopping.signal }).catch(() => undefined);
      }
    })();
    return () => {
      stopping.abort();
      return beating;
    };
  }

  async #drive(id: string, lane: number): Promise<number> {
    const path = `/internal/workers/${id}`;
    const tasks = Array.from({ length: batch }, () => {
      return { task_type: 'noop', queue: `lane-${lane}`, parameters: {} };
    });
    let completed = 0;
    while (performance.now() < this.#endsMs) {
      await this.#post('/api/v1/tasks/batch', { tasks });
      for (let left = batch; left > 0;) {
        const poll = { available_capacity: left, wait_seconds: 1 };
        const claimed = await this.#post<{ tasks: readonly Claimed[] }>(`${path}/poll`, poll);
        if (claimed.tasks.length === 0) continue;
        const results = claimed.tasks.map(({ task_id, lease }) => {
          return { task_id, lease, status: 'completed' };
        });
        await this.#post(`${path}/result`, { results });
        left -= results.length;
        completed += results.length;
      }
    }
    return completed;
  }

  #post<Answer>(path: string, body: object): Promise<Answer> {
    return post<Answer>(this.#url, path, body);
  }
}

async function post<Answer>(url: string, path: string, body: object): Promise<Answer> {
  const answer = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${path}: ${String(answer.status)} ${await answer.text()}`);
  return (await answer.json()) as Answer;
}
