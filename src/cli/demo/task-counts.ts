import { hasEnded, type TaskState } from '../../domain/task-state.js';
import type { TaskEventWire } from '../../protocol/tasks-schema.js';

export interface StateCounts {
  readonly waiting: number;
  readonly executing: number;
  readonly completed: number;
  /** Ended without a result. */
  readonly givenUp: number;
}

/** Counts tasks by where they are, from the server's event stream. */
export class TaskCounts {
  readonly #tasks = new Map<string, { readonly queue: string; readonly state: TaskState }>();

  note({ task_id: taskId, queue, status: state }: TaskEventWire): void {
    this.#tasks.set(taskId, { queue, state });
  }

  /** Null: of every queue. */
  of(queue: string | null): StateCounts {
    const counts = { waiting: 0, executing: 0, completed: 0, givenUp: 0 };
    for (const task of this.#tasks.values()) {
      if (queue === null || task.queue === queue) counts[placeOf(task.state)] += 1;
    }
    return counts;
  }
}

function placeOf(state: TaskState): keyof StateCounts {
  if (hasEnded(state)) return state === 'completed' ? 'completed' : 'givenUp';
  return state === 'executing' || state === 'assigned' ? 'executing' : 'waiting';
}

/** Resolves when the stream is open: nothing is missed then. It ends with the signal or by itself. */
export async function followTasks(
  url: string,
  onEvent: (event: TaskEventWire) => void,
  signal: AbortSignal,
): Promise<void> {
  const { body } = await fetch(new URL('/api/v1/events', url), { signal });
  if (body === null) throw new Error('The event stream is empty');
  readEvents(body, onEvent).catch(() => undefined);
}

async function readEvents(
  body: ReadableStream<Uint8Array>,
  onEvent: (event: TaskEventWire) => void,
): Promise<void> {
  const decoder = new TextDecoder();
  let unread = '';
  for await (const chunk of body) {
    unread += decoder.decode(chunk, { stream: true });
    const frames = unread.split('\n\n');
    unread = frames.pop() ?? '';
    for (const frame of frames) {
      const [name, data] = frame.split('\ndata: ');
      if (name === 'event: task' && data !== undefined) onEvent(JSON.parse(data) as TaskEventWire);
    }
  }
}
