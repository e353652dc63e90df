// One case of growth, alone in its process, so that what another one leaves in memory is not this one's:
// node --import tsx --expose-gc bench/growth/side.ts JSON
import { openEngine } from '../../src/engine/open-engine.js';
import { crowdRound } from './crowd-round.js';
import { Drafts } from './drafts.js';
import type { Values } from './measures.js';
import type { Answer, Ask, SideOptions } from './side-process.js';
import { steadyRound } from './steady-round.js';

const megabyte = 2 ** 20;
const batch = 1_000;

const options = JSON.parse(process.argv[2] ?? '') as SideOptions;
const { databaseUrl, redisUrl, waiting, queues, round } = options;
const drafts = new Drafts(queues);

// A parent that is gone wants nothing any more.
process.once('disconnect', () => process.exit(1));

const engine = await openEngine({
  database: { kind: 'postgres', url: databaseUrl },
  ...(redisUrl === null ? {} : { redisUrl }),
  // Nobody heartbeats, and nothing is let go while it is measured.
  settings: { leaseMs: 3_600_000, retainEndedDays: 365 },
});
for (let from = 0; from < waiting; from += batch) {
  await engine.submitMany(drafts.take(Math.min(batch, waiting - from)));
}
process.on('message', (ask: Ask) => void answerTo(ask));
tell({ kind: 'filled' });

async function answerTo(ask: Ask): Promise<void> {
  if (ask === 'round') {
    tell({ kind: 'measured', values: await measure() });
    return;
  }
  global.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  process.send?.({ kind: 'held', megabytes: (heapUsed + external) / megabyte } satisfies Answer);
  await engine.close();
  process.exit();
}

async function measure(): Promise<Values> {
  const values =
    round.kind === 'steady'
      ? await steadyRound(engine, drafts, round)
      : await crowdRound(engine, drafts, round);
  return { ...values, memory: process.memoryUsage.rss() / megabyte };
}

function tell(answer: Answer): void {
  process.send?.(answer);
}
