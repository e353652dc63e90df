import type { TaskDraft } from '../../src/protocol/tasks-api.js';

const text = 'x'.repeat(100);

/** Tasks that do nothing, dealt over so many queues, one after the other. */
export class Drafts {
  readonly #queues: number;
  #next = 0;

  constructor(queues: number) {
    this.#queues = queues;
  }

  take(count: number): TaskDraft[] {
    return Array.from({ length: count }, () => {
      const index = this.#next++;
      return {
        taskType: 'noop',
        queue: `queue-${index % this.#queues}`,
        parameters: { index, text },
      };
    });
  }
}
