import { median } from '../../shared/measure.js';
import {
  judged,
  noted,
  percent,
  seconds,
  withSpread,
  type Row,
  type Scenario,
} from '../../shared/scenario.js';
import { Fleet, steps } from '../fleet.js';
import { sharesOf, type Note } from '../run-log.js';

const fast = ['a', 'b', 'c'];
const slow = 'slow';
const concurrency = 20;
const stepMs = 100;
const tolerance = 0.05;
const wantedRatio = 1.1;

export const sharing: Scenario = {
  name: 'sharing',
  about:
    '3,000 tasks of 100 ms among 3 equal workers with 20 slots, and a fourth at a tenth of the speed',
  run: async (lab) => {
    await using fleet = await Fleet.start(lab.postgresUrl);
    await startEqualWorkers(fleet);
    const length = lab.size(3_000, 600);
    await shareOut(fleet, 'warm-up', 300);
    const without: Shared[] = [];
    const withSlow: Shared[] = [];
    for (let round = 1; round <= lab.size(2, 1); round += 1) {
      without.push(await shareOut(fleet, `equal-${round}`, length));
      const env = { WORKER_SLOWNESS: '10' };
      const tenth = await fleet.startWorker({ name: slow, concurrency, env });
      withSlow.push(await shareOut(fleet, `unequal-${round}`, length));
      await tenth.process.stop();
    }
    return [equalRow(without), ...slowRows(without, withSlow)];
  },
};

export async function startEqualWorkers(fleet: Fleet): Promise<void> {
  await fleet.startWorkers(fast.map((name) => ({ name, concurrency })));
}

export interface Shared {
  /** Of all tasks, by the name of the worker. */
  readonly shares: ReadonlyMap<string, number>;
  /** From the first begin to the last end by one of the equal workers. */
  readonly fastMs: number;
  readonly wholeMs: number;
}

/** All at once, so that each takes what it can. */
export async function shareOut(fleet: Fleet, queue: string, length: number): Promise<Shared> {
  const before = fleet.notes().length;
  await fleet.put(queue, { paused: true });
  await fleet.submit(steps(length, stepMs, queue));
  await fleet.api().resumeQueue(queue);
  await fleet.untilEmpty();
  const notes = fleet.notes().slice(before);
  const shares = [...sharesOf(notes)].map(([name, ended]) => [name, ended / length] as const);
  return {
    shares: new Map(shares),
    fastMs: durationOf(notes.filter(({ worker }) => worker !== slow)),
    wholeMs: durationOf(notes),
  };
}

function durationOf(notes: readonly Note[]): number {
  const times = notes.map(({ at }) => at);
  return Math.max(...times) - Math.min(...times);
}

function equalRow(rounds: readonly Shared[]): Row {
  const shares = rounds.flatMap((round) => fast.map((name) => round.shares.get(name) ?? 0));
  const farthest = Math.max(...shares.map((share) => Math.abs(share - 1 / 3)));
  return judged(
    {
      what: `share of each of 3 equal workers, ${rounds.length} rounds`,
      measured: withSpread(shares, percent),
      numbers: { farthest },
    },
    '33.3 % ± 5',
    farthest <= tolerance,
  );
}

function slowRows(without: readonly Shared[], withSlow: readonly Shared[]): Row[] {
  const ofAFast = withSlow.map(({ shares }) => {
    const slowShare = shares.get(slow) ?? 0;
    return slowShare / ((1 - slowShare) / fast.length);
  });
  const tenth = median(ofAFast);
  const beforeMs = median(without.map(({ fastMs }) => fastMs));
  const besideMs = median(withSlow.map(({ fastMs }) => fastMs));
  const wholeMs = median(withSlow.map((round) => round.wholeMs));
  return [
    judged(
      {
        what: 'what the slow one takes, of what an equal one takes',
        measured: withSpread(ofAFast, percent),
        numbers: { tenth },
      },
      '10 % ± 5',
      Math.abs(tenth - 0.1) <= tolerance,
    ),
    judged(
      {
        what: 'until the equal ones are done, without the slow one; beside it; ratio',
        measured: `${seconds(beforeMs)}; ${seconds(besideMs)}; ${(besideMs / beforeMs).toFixed(2)}`,
        numbers: { beforeMs, besideMs, ratio: besideMs / beforeMs },
      },
      `≤ ${wantedRatio}`,
      besideMs / beforeMs <= wantedRatio,
    ),
    noted({
      what: 'until all are done, beside the slow one, whose last task takes 1 s',
      measured: seconds(wholeMs),
      numbers: { wholeMs },
    }),
  ];
}
