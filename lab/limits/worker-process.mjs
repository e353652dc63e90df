// Several workers in one process, each at a server of its own: node worker-process.mjs JSON
import { NodeHttpApi } from '../../dist/client/node-http-api.js';
import { Worker } from '../../dist/worker/index.js';
import * as tasks from './tasks.mjs';

const { urls, concurrency } = JSON.parse(process.argv[2]);
const workers = urls.map(
  (url) =>
    new Worker(new NodeHttpApi(url), Object.values(tasks), { concurrency, drainTimeoutMs: 5_000 }),
);

// Whoever started it is gone, or has read what it wanted to know.
process.once('disconnect', () => void stop());
await Promise.all(workers.map((worker) => worker.start()));
console.log(`${workers.length} workers are ready`);

async function stop() {
  await Promise.all(workers.map((worker) => worker.stop()));
  process.exit();
}
