// What one take costs on 10,000 queues of one task against one queue of 10,000: `npm run bench:take`.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startRedis } from '../test/support/services/redis-server.js';
import { median } from './median.js';

const rounds = 5;
const side = join(import.meta.dirname, 'take-side.ts');

/** Median over several rounds in one process, in microseconds a take. */
async function measure(queues: number, times: number, redisUrl?: string): Promise<number> {
  const args = ['--import', 'tsx', side, String(queues), String(times)];
  if (redisUrl !== undefined) args.push(redisUrl);
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return Number(stdout);
}

async function compare(name: string, times: number, redisUrl?: string): Promise<void> {
  const one: number[] = [];
  const many: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    one.push(await measure(1, times, redisUrl));
    many.push(await measure(10_000, times, redisUrl));
  }
  const ratios = many.map((value, index) => value / (one[index] ?? Number.NaN));
  const [ofOne, ofMany] = [median(one), median(many)].map((value) => `${value.toFixed(2)} µs`);
  const spread = `${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`;
  console.log(
    `${name}: one queue of 10,000 ${ofOne ?? ''}, 10,000 queues of one ${ofMany ?? ''}, ` +
      `ratio ${median(ratios).toFixed(2)} (${spread}), at most 1.5`,
  );
}

await compare('memory', 40);
const redis = await startRedis();
await compare('Redis', 1, redis.url);
await redis.stop();
