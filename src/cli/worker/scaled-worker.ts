import type { WorkerProcessHandle } from '../../server/provisioner/process.js';
import { WorkerProcess, type ProcessEnd } from './worker-process.js';

/** `sluice worker` in a process that a server starts, and that ends with it. */
export function startScaledWorker(args: readonly string[]): WorkerProcessHandle {
  let taskTypes: readonly string[] | null = null;
  const started = new WorkerProcess({
    args,
    onWaiting: () => undefined,
    onReady: (message) => {
      ({ taskTypes } = message);
    },
  });
  return {
    get taskTypes() {
      return taskTypes;
    },
    ended: started.ended.then(crashText),
    drain: () => started.drain(),
    kill: () => started.kill(),
  };
}

function crashText({ how }: ProcessEnd): string | null {
  switch (how.kind) {
    case 'left':
      return null;
    case 'exited':
      return how.code === 0 ? null : `ended with exit code ${how.code}.`;
    case 'killed':
      return `was killed by ${how.signal}.`;
    case 'failed':
      return `could not start: ${how.message}`;
  }
}
