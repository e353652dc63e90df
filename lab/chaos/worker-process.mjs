// A worker of the chaos run: node worker-process.mjs URL NAME LOG CONCURRENCY
// It writes down what it does in one write for each line, which a SIGKILL does not undo.
import { appendFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { NodeHttpApi } from '../../dist/client/node-http-api.js';
import { RateLimitedError, Worker } from '../../dist/worker/index.js';

const [url, name, log, concurrency] = process.argv.slice(2);

function note(what, more) {
  appendFileSync(log, `${JSON.stringify({ what, worker: name, at: Date.now(), ...more })}\n`);
}

class NotedApi extends NodeHttpApi {
  async report(workerId, reports) {
    const answers = await super.report(workerId, reports);
    answers.forEach((answer, index) => {
      const { taskId, lease, status } = reports[index];
      if (status === 'completed') note(answer.accepted ? 'accepted' : 'refused', { taskId, lease });
    });
    return answers;
  }
}

/** Takes so long, and fails in every attempt up to `fails`. */
const step = {
  type: 'step',
  run: async ({ ms, fails, pushes_back }, { task, attempt, signal }) => {
    note('began', { taskId: task.taskId, attempt });
    await delay(ms, undefined, { signal });
    note('ended', { taskId: task.taskId, attempt });
    if (attempt > fails) return { worker: name, attempt };
    throw pushes_back ? new RateLimitedError(1) : new Error(`Attempt ${attempt} was to fail`);
  },
};

const worker = new Worker(new NotedApi(url), [step], {
  name,
  concurrency: Number(concurrency),
  drainTimeoutMs: 5_000,
});
// Whoever started it is gone.
process.once('disconnect', () => process.exit());
process.once('SIGTERM', () => void worker.stop().then(() => process.exit()));
await worker.start();
console.log(`${name} is ready`);
