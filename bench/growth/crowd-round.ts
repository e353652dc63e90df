import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Engine } from '../../src/engine/open-engine.js';
import type { ClaimedTask } from '../../src/protocol/workers-api.js';
import { quantile } from '../run/summary.js';
import { BenchWorker } from './bench-worker.js';
import type { Drafts } from './drafts.js';
import type { Values } from './measures.js';
import { Stopwatch } from './stopwatch.js';

const slots = 50;
const batch = 1_000;

export interface CrowdSizes {
  readonly workers: number;
  readonly tasks: number;
  /** Of the time from a submit to its delivery. */
  readonly samples: number;
}

/** Many workers that poll at once: a backlog that all of them share, then single tasks while all wait. */
export async function crowdRound(
  engine: Engine,
  drafts: Drafts,
  { workers, tasks, samples }: CrowdSizes,
): Promise<Values> {
  const crowd = await Promise.all(
    Array.from({ length: workers }, () => BenchWorker.register(engine, slots)),
  );
  const values = {
    ...(await measureRate(engine, crowd, drafts, tasks)),
    ...(await measureStarts(engine, crowd, drafts, samples)),
  };
  await Promise.all(crowd.map((worker) => worker.leave()));
  return values;
}

async function measureRate(
  engine: Engine,
  crowd: readonly BenchWorker[],
  drafts: Drafts,
  tasks: number,
): Promise<Values> {
  for (let from = 0; from < tasks; from += batch) await engine.submitMany(drafts.take(batch));
  const over = new AbortController();
  const watch = new Stopwatch();
  let left = tasks;
  await watch.time(() =>
    untilOver(crowd, over, (claimed) => {
      left -= claimed.length;
      if (left <= 0) over.abort();
    }),
  );
  return { perSecond: (tasks * 1000) / watch.ms };
}

async function measureStarts(
  engine: Engine,
  crowd: readonly BenchWorker[],
  drafts: Drafts,
  samples: number,
): Promise<Values> {
  const over = new AbortController();
  let delivered: () => void = () => undefined;
  const working = untilOver(crowd, over, () => delivered());
  const times: number[] = [];
  try {
    for (let sample = 0; sample < samples; sample += 1) {
      await delay(pauseMs(sample));
      const arrival = new Promise<void>((resolve) => {
        delivered = resolve;
      });
      const beganMs = performance.now();
      const acknowledged = engine.submitMany(drafts.take(1));
      // Whoever fails is heard of; whoever is acknowledged still has to arrive.
      await Promise.race([arrival, acknowledged.then(() => arrival)]);
      times.push(performance.now() - beganMs);
      await acknowledged;
    }
  } finally {
    over.abort();
    await working;
  }
  return { startP50: quantile(times, 0.5), startP99: quantile(times, 0.99) };
}

/** Each worker polls, completes what it got, and polls again. */
async function untilOver(
  crowd: readonly BenchWorker[],
  over: AbortController,
  onClaimed: (tasks: readonly ClaimedTask[]) => void,
): Promise<void> {
  setMaxListeners(crowd.length, over.signal);
  const work = async (worker: BenchWorker) => {
    while (!over.signal.aborted) {
      const claimed = await worker.poll(slots, over.signal);
      if (claimed.length === 0) continue;
      onClaimed(claimed);
      await worker.complete(claimed);
    }
  };
  await Promise.all(crowd.map(work));
}

/** Not always the same: it would fall into step with whoever looks at intervals. */
function pauseMs(sample: number): number {
  return 5 + ((sample * 7) % 11);
}
