// The service that tasks call, without the bill: slow answers, and some that fail.
// tsx lab/stand-in/model-server.ts
import { startModelServer } from '../../src/cli/demo/model-server.js';

const { url } = await startModelServer({
  models: [
    { name: 'fast', share: 0.5, minMs: 20, maxMs: 100 },
    { name: 'slow', share: 0.5, minMs: 1_000, maxMs: 5_000 },
  ],
  failureShare: 0.01,
});
console.log(`POST { "model", "prompt", "attempt" } to ${url}`);
