import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import type { KnownTask } from '../store/claim-tasks.js';
import type { KnownAttempt } from '../store/finish-tasks.js';
import { Recent } from './recent.js';

const maxTaskBytes = 8 * 1024 * 1024;
/** Of a task, besides its parameters: about. */
const taskBytes = 200;
const maxAttempts = 50_000;
/** If less of it is claimed here, to read it when it is fed costs more than it saves at the claim. */
const leastShareClaimed = 0.4;
/** The share is that of the last so many, about. */
const countedTasks = 16_384;
/** So seldom it is read nevertheless: others may have left, and all is claimed here again. */
const feedsPerTrial = 20;

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
  #noted = 0;
  #claimed = 0;
  #feeds = 0;

  /** How large the parameters of so many tasks may be for all of them to be kept, and nothing lost. */
  roomForEach(tasks: number): number {
    return bytesForEach(this.#tasks.room, tasks);
  }

  /**
   * The same for tasks that others may claim: what they did claim is kept in vain, and has to make room.
   * None if that is most of it.
   */
  sharedRoomForEach(tasks: number): number {
    this.#feeds += 1;
    const isTrial = this.#feeds % feedsPerTrial === 0;
    const isKnownInVain =
      this.#noted >= countedTasks / 2 && this.#claimed < this.#noted * leastShareClaimed;
    return isKnownInVain && !isTrial ? 0 : bytesForEach(this.#tasks.mostAtOnce, tasks);
  }

  noteTask(taskId: TaskId, task: KnownTask): void {
    this.#tasks.add(taskId, task);
    this.#noted += 1;
    if (this.#noted < countedTasks) return;
    this.#noted /= 2;
    this.#claimed /= 2;
  }

  /** Once, since most attempts succeed. */
  takeTask(taskId: TaskId): KnownTask | null {
    const task = this.#tasks.take(taskId);
    if (task !== null) this.#claimed += 1;
    return task;
  }

  /** It was left in line: nobody claims it soon. */
  forgetTask(taskId: TaskId): void {
    if (this.#tasks.take(taskId) !== null) this.#noted -= 1;
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

function bytesForEach(room: number, tasks: number): number {
  return Math.max(0, Math.floor(room / tasks) - taskBytes);
}
