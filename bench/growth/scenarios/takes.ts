import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Lab } from '../../../lab/shared/lab.js';
import { median } from '../../../lab/shared/measure.js';
import { judged, withSpread, type Row, type Scenario } from '../../../lab/shared/scenario.js';
import { startRedis } from '../../../test/support/services/redis-server.js';

const program = join(import.meta.dirname, '../take-side.ts');
const atMost = 1.5;

export const takes: Scenario = {
  name: 'takes',
  about: 'one take of the ready queue alone: one queue of 10,000 tasks, and 10,000 queues of one',
  run: async (lab) => {
    const inMemory = await compareTakes(lab, 'memory', lab.size(40, 2));
    const redis = await startRedis();
    try {
      return [inMemory, await compareTakes(lab, 'redis', 1, redis.url)];
    } finally {
      await redis.stop();
    }
  },
};

async function compareTakes(
  lab: Lab,
  title: string,
  times: number,
  redisUrl?: string,
): Promise<Row> {
  const one: number[] = [];
  const many: number[] = [];
  const rounds = lab.number('rounds');
  const takesInRound = lab.size(5_000, 500);
  using progress = lab.progress.steps(`${title}, rounds`, rounds);
  for (let round = 0; round < rounds; round += 1) {
    one.push(await measure(1, times, takesInRound, redisUrl));
    many.push(await measure(10_000, times, takesInRound, redisUrl));
    progress.step();
  }
  const ratios = many.map((value, round) => value / (one[round] ?? Number.NaN));
  const [ofMany, ofOne] = [many, one].map((values) => withSpread(values, micros));
  return judged(
    {
      what: `${title}: a take from 10,000 queues against one queue`,
      measured: `${ofMany ?? ''} against ${ofOne ?? ''}; ratio ${withSpread(ratios, twoDigits)}`,
      numbers: { ratio: median(ratios), one, many, ratios },
    },
    `≤ ${atMost}`,
    median(ratios) <= atMost,
  );
}

/** Median over several rounds in one process, in microseconds a take. */
async function measure(
  queues: number,
  times: number,
  takesInRound: number,
  redisUrl?: string,
): Promise<number> {
  const words = [queues, times, takesInRound].map(String);
  if (redisUrl !== undefined) words.push(redisUrl);
  const args = ['--import', import.meta.resolve('tsx'), program, ...words];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return Number(stdout);
}

const micros = (value: number): string => `${value.toFixed(2)} µs`;
const twoDigits = (value: number): string => value.toFixed(2);
