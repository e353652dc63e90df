export const taskStates = [
  'pending',
  'queued',
  'assigned',
  'executing',
  'completed',
  'dead_letter',
  'failed',
  'cancelled',
] as const;

export type TaskState = (typeof taskStates)[number];

/** What a `pending` task waits for: a time, or its turn in its workflow. */
export type WaitsFor = 'time' | 'workflow';

export interface Transition {
  readonly verb: string;
  readonly from: TaskState | 'new';
  readonly to: TaskState;
  readonly when: string;
}

/** The only transitions there are. The picture in the docs is generated from this table. */
export const transitions: readonly Transition[] = [
  { verb: 'submit', from: 'new', to: 'queued', when: 'it is due' },
  { verb: 'submit', from: 'new', to: 'pending', when: 'not due, or behind its workflow' },
  { verb: 'get in line', from: 'pending', to: 'queued', when: 'its time has come' },
  { verb: 'claim', from: 'queued', to: 'executing', when: 'a worker that starts at once takes it' },
  { verb: 'claim', from: 'queued', to: 'assigned', when: 'a worker that prefetches takes it' },
  { verb: 'start', from: 'assigned', to: 'executing', when: 'its worker begins' },
  { verb: 'complete', from: 'executing', to: 'completed', when: 'its worker reports a result' },
  { verb: 'complete', from: 'assigned', to: 'completed', when: 'the result came before the start' },
  { verb: 'go back', from: 'executing', to: 'pending', when: 'retry, release, deferral or lapse' },
  { verb: 'go back', from: 'assigned', to: 'pending', when: 'retry, release, deferral or lapse' },
  { verb: 'go back', from: 'queued', to: 'pending', when: 'its time or priority was changed' },
  { verb: 'give up', from: 'executing', to: 'dead_letter', when: 'retries spent or not retriable' },
  { verb: 'give up', from: 'assigned', to: 'dead_letter', when: 'retries or returns spent' },
  { verb: 'expire', from: 'pending', to: 'failed', when: 'its dispatch deadline passed' },
  { verb: 'expire', from: 'queued', to: 'failed', when: 'its dispatch deadline passed' },
  { verb: 'cancel', from: 'pending', to: 'cancelled', when: 'asked to' },
  { verb: 'cancel', from: 'queued', to: 'cancelled', when: 'asked to' },
  { verb: 'cancel', from: 'assigned', to: 'cancelled', when: 'asked to' },
  { verb: 'cancel', from: 'executing', to: 'cancelled', when: 'asked to; its worker is told' },
  { verb: 'cancel', from: 'dead_letter', to: 'cancelled', when: 'it halts its workflow' },
  { verb: 'cancel', from: 'failed', to: 'cancelled', when: 'it halts its workflow' },
  { verb: 'replay', from: 'dead_letter', to: 'pending', when: 'asked to' },
  { verb: 'replay', from: 'failed', to: 'pending', when: 'asked to' },
  { verb: 'replay', from: 'cancelled', to: 'pending', when: 'asked to' },
];

const ended: ReadonlySet<TaskState> = new Set<TaskState>([
  'completed',
  'dead_letter',
  'failed',
  'cancelled',
]);

export function hasEnded(state: TaskState): boolean {
  return ended.has(state);
}

/** Held by a worker: exactly the states in which a task has a lease. */
export function isLeased(state: TaskState): boolean {
  return state === 'assigned' || state === 'executing';
}

export function canMove(from: TaskState | 'new', to: TaskState): boolean {
  return transitions.some((transition) => transition.from === from && transition.to === to);
}
