import type { WorkerId } from '../../src/domain/ids.js';
import type { Engine } from '../../src/engine/open-engine.js';
import type { ClaimedTask } from '../../src/protocol/workers-api.js';

const patienceMs = 10_000;

/** A worker by its calls alone: no handler and no slot is in the way of what is measured. */
export class BenchWorker {
  readonly #engine: Engine;
  readonly #workerId: WorkerId;

  private constructor(engine: Engine, workerId: WorkerId) {
    this.#engine = engine;
    this.#workerId = workerId;
  }

  static async register(engine: Engine, capacity: number): Promise<BenchWorker> {
    const { workerId } = await engine.register({ capacity });
    return new BenchWorker(engine, workerId);
  }

  /** Up to so many; it waits until there is one. */
  async poll(count: number, signal?: AbortSignal): Promise<readonly ClaimedTask[]> {
    const request = { availableCapacity: count, waitMs: patienceMs };
    return (await this.#engine.poll(this.#workerId, request, signal)).tasks;
  }

  /** So many, in as many polls as it takes. */
  async claim(count: number): Promise<readonly ClaimedTask[]> {
    const claimed: ClaimedTask[] = [];
    while (claimed.length < count) {
      const tasks = await this.poll(count - claimed.length);
      if (tasks.length === 0) throw new Error('Tasks are missing');
      claimed.push(...tasks);
    }
    return claimed;
  }

  async complete(tasks: readonly ClaimedTask[]): Promise<void> {
    const reports = tasks.map(
      ({ taskId, lease }) =>
        ({ taskId, lease, status: 'completed', result: { ok: true } }) as const,
    );
    const answers = await this.#engine.report(this.#workerId, reports);
    // Work that was not done would make a fast round.
    const refused = answers.find(({ accepted }) => !accepted);
    if (refused !== undefined) throw new Error(`A result was refused: ${JSON.stringify(refused)}`);
  }

  async leave(): Promise<void> {
    await this.#engine.deregister(this.#workerId);
  }
}
