import { setTimeout as delay } from 'node:timers/promises';
import { NodeHttpApi } from '../../src/client/node-http-api.js';
import { SluiceError } from '../../src/domain/errors.js';
import type { TaskId } from '../../src/domain/ids.js';
import type { SluiceApi } from '../../src/protocol/api.js';
import type { QueueDraft } from '../../src/protocol/queues-api.js';
import type { Acknowledged } from './history.js';
import type { PlannedTask, queues, Unit, Workload } from './workload.js';

/** So many callers submit at once, each one unit after the other. */
const callers = 4;
const pauseMs = 160;
const retryMs = 100;
/** A frozen server is given up for the other one; what was sent to it may still be carried out. */
const timeoutMs = 2_000;

/** Submits all the time, and keeps a log of its own of what was acknowledged. */
export class Driver {
  readonly acknowledged: Acknowledged[] = [];
  readonly cancels = new Map<string, 'asked' | 'acknowledged'>();
  /** How often a call was not answered as it should be, by what was answered. */
  readonly refusals = new Map<string, number>();
  readonly #apis: readonly SluiceApi[];
  readonly #workload: Workload;
  readonly #cancelling = new Set<Promise<void>>();
  #turn = 0;
  #isStopping = false;
  #running: Promise<unknown> = Promise.resolve();

  constructor(urls: readonly string[], workload: Workload) {
    this.#apis = urls.map((url) => new NodeHttpApi(url, { timeoutMs }));
    this.#workload = workload;
  }

  async configure(changes: typeof queues): Promise<void> {
    for (const [name, change] of Object.entries(changes)) await this.change(name, change);
  }

  /** How often it had to be sent: an unanswered change may be carried out later. */
  async change(name: string, change: QueueDraft): Promise<number> {
    let sent = 0;
    await this.#insist((api) => {
      sent += 1;
      return api.putQueue(name, change);
    });
    return sent;
  }

  start(): void {
    this.#running = Promise.all(Array.from({ length: callers }, () => this.#submitAll()));
    this.#running.catch(() => undefined);
  }

  /** Resolves when everything it has sent is answered. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#running;
    await Promise.all(this.#cancelling);
  }

  /** Of all tasks, at most a thousand in each state. */
  async countLiving(): Promise<number> {
    const states = ['pending', 'queued', 'assigned', 'executing'] as const;
    const counts = await Promise.all(
      states.map(async (status) => {
        const page = await this.#insist((api) => api.listTasks({ status }, { limit: 1_000 }));
        return page.items.length;
      }),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }

  async #submitAll(): Promise<void> {
    while (!this.#isStopping) {
      await this.#submit(this.#workload.next());
      await delay(pauseMs);
    }
  }

  async #submit({ tasks, workflowId }: Unit): Promise<void> {
    if (workflowId === null) return this.#submitTogether(tasks);
    for (const [place, task] of tasks.entries()) {
      const { taskId } = await this.#insist((api) => api.submit(task.draft));
      this.#note(task, taskId, { id: workflowId, place });
    }
  }

  /** What is not answered is sent again with its key, until all is. */
  async #submitTogether(tasks: readonly PlannedTask[]): Promise<void> {
    let left = tasks;
    while (left.length > 0) {
      const sent = left;
      const outcomes = await this.#insist((api) => api.submitMany(sent.map(({ draft }) => draft)));
      left = sent.filter((task, index) => {
        const outcome = outcomes[index];
        if (outcome?.kind === 'accepted') this.#note(task, outcome.receipt.taskId, null);
        else this.#refused(outcome?.code ?? 'no answer');
        return outcome?.kind !== 'accepted';
      });
      if (left.length > 0) await delay(retryMs);
    }
  }

  #note(task: PlannedTask, taskId: TaskId, workflow: Acknowledged['workflow']): void {
    const { draft, fails, cancelAfterMs } = task;
    this.acknowledged.push({ key: draft.idempotencyKey, taskId, fails, workflow });
    if (cancelAfterMs === null) return;
    const cancelling = this.#cancel(taskId, cancelAfterMs);
    this.#cancelling.add(cancelling);
    void cancelling.then(() => this.#cancelling.delete(cancelling));
  }

  async #cancel(taskId: TaskId, afterMs: number): Promise<void> {
    await delay(afterMs);
    this.cancels.set(taskId, 'asked');
    const isCancelled = await this.#insist(async (api) => {
      try {
        await api.cancelTask(taskId);
        return true;
      } catch (error) {
        if (error instanceof SluiceError && error.code === 'task_ended') return false;
        throw error;
      }
    });
    if (isCancelled) this.cancels.set(taskId, 'acknowledged');
  }

  /** At either server, until one answers. Only an outage and an overload are worth another try. */
  async #insist<Answer>(call: (api: SluiceApi) => Promise<Answer>): Promise<Answer> {
    for (;;) {
      this.#turn += 1;
      const api = this.#apis[this.#turn % this.#apis.length];
      if (api === undefined) throw new Error('There is no server');
      try {
        return await call(api);
      } catch (error) {
        if (!(error instanceof SluiceError) || !mayPass(error)) throw error;
        this.#refused(error.code);
        await delay(retryMs);
      }
    }
  }

  #refused(code: string): void {
    this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1);
  }
}

function mayPass({ status, code }: SluiceError): boolean {
  return status >= 500 || code === 'refused';
}
