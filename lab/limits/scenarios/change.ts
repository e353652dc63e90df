import { setTimeout as delay } from 'node:timers/promises';
import { timesOf } from '../claims.js';
import { Cluster, requests } from '../cluster.js';
import { spreadOf } from '../../shared/measure.js';
import { count, judged, ms, type Scenario } from '../../shared/scenario.js';

const queue = 'changed';
const slow = { limits: [requests(60, 60)] };
const fast = { limits: [requests(6_000, 60)] };
const fastGapMs = 100;
const wantedMs = 100;
/** 60 a minute for 10 s, what a full bucket holds besides, and one that was on its way. */
const afterSeconds = 10;
const mostAfter = 12;

export const change: Scenario = {
  name: 'change',
  about: 'from 60 to 6,000 a minute by a PUT at server A, seen by workers at server B, and back',
  run: async (lab) => {
    await using cluster = await Cluster.start(lab.postgresUrl, { servers: 2, ready: 'redis' });
    const rounds = lab.size(5, 1);
    await cluster.put(queue, slow);
    const length = rounds * 1_000;
    await cluster.submit(Array.from({ length }, () => ({ taskType: 'call', queue })));
    await cluster.startWorkers({ workers: 4, concurrency: 10, at: [1] });
    const faster: number[] = [];
    const passed: number[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      // Between two tokens, at another place each time.
      await delay(2_000 + round * 137);
      faster.push(await speedUp(cluster));
      await delay(1_000);
      passed.push(await slowDown(cluster, () => lab.progress.wait('change', afterSeconds * 1000)));
    }
    const { median, most } = spreadOf(faster);
    const mostPassed = Math.max(...passed);
    return [
      judged(
        {
          what: `from the PUT at A being sent to the second of two calls less than ${fastGapMs} ms apart`,
          measured: `median ${ms(median)}, most ${ms(most)} of ${rounds}`,
          numbers: { median, most, rounds },
        },
        `≤ ${wantedMs} ms`,
        most <= wantedMs,
      ),
      judged(
        {
          what: `claims in the ${afterSeconds} s after the answer to the PUT back to 60 a minute`,
          measured: `${count(mostPassed)} at most of ${rounds}`,
          numbers: { mostPassed, rounds },
        },
        `≤ ${mostAfter}`,
        mostPassed <= mostAfter,
      ),
    ];
  },
};

async function speedUp(cluster: Cluster): Promise<number> {
  const sentAt = Date.now();
  await cluster.put(queue, fast, 0);
  for (;;) {
    const found = cluster.standIn.calls.find(
      ({ receivedAt }, index, calls) =>
        receivedAt > sentAt && receivedAt - (calls[index - 1]?.receivedAt ?? 0) < fastGapMs,
    );
    if (found !== undefined) return found.receivedAt - sentAt;
    if (Date.now() - sentAt > 30_000) throw new Error('The rate did not change in 30 s');
    await delay(20);
  }
}

async function slowDown(cluster: Cluster, wait: () => Promise<void>): Promise<number> {
  await cluster.put(queue, slow, 0);
  const answeredAt = Date.now();
  await wait();
  const endsAt = answeredAt + afterSeconds * 1000;
  const times = timesOf(await cluster.claims(), queue);
  return times.filter((time) => time > answeredAt && time < endsAt).length;
}
