import type { Engine } from '../../src/engine/open-engine.js';
import type { ClaimedTask } from '../../src/protocol/workers-api.js';
import { quantile } from '../run/summary.js';
import { BenchWorker } from './bench-worker.js';
import type { Drafts } from './drafts.js';
import type { Values } from './measures.js';
import { Stopwatch } from './stopwatch.js';

const batch = 500;
const pollSize = 5;
const pollsInTurn = 50;

export interface SteadySizes {
  readonly tasks: number;
  readonly polls: number;
}

/** As many come as go, so that what waits stays as much as it is. */
export async function steadyRound(
  engine: Engine,
  drafts: Drafts,
  { tasks, polls }: SteadySizes,
): Promise<Values> {
  const worker = await BenchWorker.register(engine, batch);
  const values = {
    ...(await measureRates(engine, worker, drafts, tasks)),
    ...(await measureTakes(engine, worker, drafts, polls)),
  };
  await worker.leave();
  return values;
}

async function measureRates(
  engine: Engine,
  worker: BenchWorker,
  drafts: Drafts,
  tasks: number,
): Promise<Values> {
  const [submits, claims, finishes] = [new Stopwatch(), new Stopwatch(), new Stopwatch()];
  for (let done = 0; done < tasks; done += batch) {
    const submitted = drafts.take(batch);
    await submits.time(() => engine.submitMany(submitted));
    const claimed = await claims.time(() => worker.claim(batch));
    await finishes.time(() => worker.complete(claimed));
  }
  const microsEach = ({ ms }: Stopwatch) => (ms * 1000) / tasks;
  return {
    perSecond: (tasks * 1000) / (submits.ms + claims.ms + finishes.ms),
    submitMicros: microsEach(submits),
    claimMicros: microsEach(claims),
    finishMicros: microsEach(finishes),
  };
}

/** Small polls, one after the other, as of a worker with few slots. */
async function measureTakes(
  engine: Engine,
  worker: BenchWorker,
  drafts: Drafts,
  polls: number,
): Promise<Values> {
  const times: number[] = [];
  while (times.length < polls) {
    await engine.submitMany(drafts.take(pollsInTurn * pollSize));
    const claimed: ClaimedTask[] = [];
    for (let turn = 0; turn < pollsInTurn; turn += 1) {
      const poll = new Stopwatch();
      claimed.push(...(await poll.time(() => worker.poll(pollSize))));
      times.push(poll.ms);
    }
    await worker.complete(claimed);
  }
  return { takeP50: quantile(times, 0.5), takeP99: quantile(times, 0.99) };
}
