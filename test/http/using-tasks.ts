import { expect } from 'vitest';
import { post, type Answer, type Call } from './support.js';

export interface Claimed {
  task_id: string;
  lease: string;
}

/** What most tests begin with, over the wire. */
export function usingTasks(call: (call: Call) => Promise<Answer>) {
  async function submit(draft: object = {}): Promise<string> {
    const answer = await call(post('/api/v1/tasks', { task_type: 'chat', ...draft }));
    expect(answer.status).toBe(201);
    return answer.json<{ task_id: string }>().task_id;
  }

  async function register(offer: object = {}): Promise<string> {
    const answer = await call(post('/internal/workers/register', { capacity: 100, ...offer }));
    return answer.json<{ worker_id: string }>().worker_id;
  }

  /** A task of a queue of its own, claimed. */
  async function claim(queue: string, poll: object = {}): Promise<Claimed & { worker: string }> {
    const task_id = await submit({ queue });
    const worker = await register();
    const answer = await call(
      post(`/internal/workers/${worker}/poll`, {
        available_capacity: 1,
        wait_seconds: 20,
        queues: [queue],
        ...poll,
      }),
    );
    const [claimed] = answer.json<{ tasks: Claimed[] }>().tasks;
    expect(claimed?.task_id).toBe(task_id);
    return { task_id, lease: claimed?.lease ?? '', worker };
  }

  async function makeDeadLetter(queue: string, code = 'INVALID_INPUT'): Promise<string> {
    const { task_id, lease, worker } = await claim(queue);
    const error = { code, message: 'no', retriable: false };
    const report = { task_id, lease, status: 'failed', error };
    await call(post(`/internal/workers/${worker}/result`, report));
    return task_id;
  }

  return { submit, register, claim, makeDeadLetter };
}
