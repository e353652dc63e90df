import { SluiceError } from './errors.js';

/** Which part of the queues and tasks a key reaches. What it does not reach does not exist for it. */
export interface Confinement {
  /** Names, or beginnings of names followed by `*`. Null: every queue. */
  readonly queues: readonly string[] | null;
  /** The key whose own tasks these are. Null: the tasks of everybody. */
  readonly owner: string | null;
}

export const unconfined: Confinement = { queues: null, owner: null };

export function isConfined({ queues, owner }: Confinement): boolean {
  return queues !== null || owner !== null;
}

export function reachesQueue({ queues }: Confinement, queue: string): boolean {
  return queues === null || queues.some((pattern) => matches(pattern, queue));
}

export function reachesTask(
  confinement: Confinement,
  task: { readonly queue: string; readonly owner: string | null },
): boolean {
  const { owner } = confinement;
  return reachesQueue(confinement, task.queue) && (owner === null || owner === task.owner);
}

/** Whether it reaches every queue that the other one reaches. */
export function coversQueues({ queues }: Confinement, { queues: others }: Confinement): boolean {
  if (queues === null || others === null) return queues === null;
  return others.every((other) =>
    queues.some((pattern) =>
      isExact(other)
        ? matches(pattern, other)
        : !isExact(pattern) && other.startsWith(pattern.slice(0, -1)),
    ),
  );
}

export function queueForbidden({ queues }: Confinement, queue: string): SluiceError {
  const reached = (queues ?? []).join(', ');
  const detail = `This key is confined to the queues ${reached}; ${queue} is none of them.`;
  return new SluiceError('queue_forbidden', detail);
}

/** Names alone: which queues they are is known without a look. */
export function isExact(pattern: string): boolean {
  return !pattern.endsWith('*');
}

/** For `like any`; null: every queue. */
export function likePatterns({ queues }: Confinement): readonly string[] | null {
  return (
    queues?.map((pattern) => (isExact(pattern) ? escaped(pattern) : likePrefix(pattern))) ?? null
  );
}

export function isQueuePattern(text: string): boolean {
  return /^([A-Za-z0-9._:/-]{1,200}\*?|\*)$/.test(text);
}

function matches(pattern: string, queue: string): boolean {
  return isExact(pattern) ? pattern === queue : queue.startsWith(pattern.slice(0, -1));
}

function likePrefix(pattern: string): string {
  return `${escaped(pattern.slice(0, -1))}%`;
}

function escaped(text: string): string {
  return text.replace(/[\\%_]/g, '\\$&');
}
