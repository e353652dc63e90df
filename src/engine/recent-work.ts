import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import type { KnownTask } from '../store/claim-tasks.js';
import type { KnownAttempt } from '../store/finish-tasks.js';
import { Recent } from './recent.js';

const maxTaskBytes = 8 * 1024 * 1024;
/** Of a task, besides its parameters: about. */
const taskBytes = 200;
const maxAttempts = 50_000;

/**
 * What this process knows of a task, so that Postgres need not tell it at the next step: at a claim
 * what was submitted or fed here, at an end what was claimed here. Postgres still decides whether.
 */
export class RecentWork {
  readonly #tasks = new Recent<TaskId, KnownTask>(
    maxTaskBytes,
    ({ parametersJson }) => parametersJson.length + taskBytes,
  );
  readonly #attempts = new Recent<Lease, KnownAttempt>(maxAttempts, () => 1);

  /** How large the parameters of so many tasks may be for all of them to be kept, and nothing lost. */
  roomForEach(tasks: number): number {
    return Math.max(0, Math.floor(this.#tasks.room / tasks) - taskBytes);
  }

  noteTask(taskId: TaskId, task: KnownTask): void {
    this.#tasks.add(taskId, task);
  }

  /** Once, since most attempts succeed. */
  takeTask(taskId: TaskId): KnownTask | null {
    return this.#tasks.take(taskId);
  }

  claimed(lease: Lease, attempt: KnownAttempt): void {
    this.#attempts.add(lease, attempt);
  }

  /** Null also when its lease is under the id of another worker now, which registered again. */
  takeAttempt(lease: Lease, workerId: WorkerId): KnownAttempt | null {
    const attempt = this.#attempts.take(lease);
    return attempt?.workerId === workerId ? attempt : null;
  }
}
