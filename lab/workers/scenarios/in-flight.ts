import { readFileSync } from 'node:fs';
import { drainOnce } from '../../shared/drain-once.js';
import { median } from '../../shared/measure.js';
import {
  count,
  judged,
  ms,
  noted,
  percent,
  withSpread,
  type Row,
  type Scenario,
} from '../../shared/scenario.js';
import { Fleet } from '../fleet.js';
import { processMegabytes } from '../process-memory.js';

const slots = 2_000;
const taskMs = 100;
const wantedMb = 400;
const wantedDelayMs = 50;
const wantedShare = 0.9;

export const inFlight: Scenario = {
  name: 'in-flight',
  about:
    '10,000 tasks of 100 ms in one worker process with 2,000 slots, and as many empty ones by turns',
  run: async (lab) => {
    await using fleet = await Fleet.start(lab.postgresUrl);
    const loopLog = fleet.file('loop');
    const worker = await fleet.startWorker({
      name: 'one',
      concurrency: slots,
      env: { LOOP_LOG: loopLog },
    });
    const length = lab.size(10_000, 2_000);
    const empty: number[] = [];
    const waiting: number[] = [];
    await drainOnce(lab, fleet, 'warm-up', { taskType: 'noop', length: length / 5 });
    for (let round = 1; round <= lab.size(3, 1); round += 1) {
      empty.push(await drainOnce(lab, fleet, `empty-${round}`, { taskType: 'noop', length }));
      const sleeping = { taskType: 'sleep', parameters: { ms: taskMs }, length };
      waiting.push(await drainOnce(lab, fleet, `waiting-${round}`, sleeping));
    }
    const peakMb = processMegabytes(worker.process.pid, 'VmHWM');
    await worker.process.terminate();
    const delays = JSON.parse(readFileSync(loopLog, 'utf8')) as LoopDelays;
    return [memoryRow(peakMb), delayRow(delays), ...rateRows(empty, waiting)];
  },
};

interface LoopDelays {
  readonly p50: number;
  readonly p99: number;
  readonly most: number;
}

function memoryRow(peakMb: number): Row {
  return judged(
    {
      what: 'most memory of the worker (VmHWM)',
      measured: `${count(peakMb)} MB`,
      numbers: { peakMb },
    },
    `< ${wantedMb} MB`,
    peakMb < wantedMb,
  );
}

function delayRow({ p50, p99, most }: LoopDelays): Row {
  return judged(
    {
      what: 'event-loop delay in the worker: median; p99; most',
      measured: `${ms(p50)}; ${ms(p99)}; ${ms(most)}`,
      numbers: { p50, p99, most },
    },
    `p99 < ${wantedDelayMs} ms`,
    p99 < wantedDelayMs,
  );
}

/** What the machine can do at all is taken from tasks that do nothing, in the same worker. */
function rateRows(empty: readonly number[], waiting: readonly number[]): Row[] {
  const bySlots = (slots * 1000) / taskMs;
  const byCpu = median(empty);
  const binding = byCpu < bySlots ? 'the CPU' : 'the slots';
  const share = median(waiting) / Math.min(bySlots, byCpu);
  return [
    judged(
      {
        what: `tasks of ${taskMs} ms per second; of what ${binding} allows, which binds here`,
        measured: `${withSpread(waiting, count)}; ${percent(share)}`,
        numbers: { rate: median(waiting), share },
      },
      `≥ ${percent(wantedShare, 0)}`,
      share >= wantedShare,
    ),
    noted({
      what: 'what the slots allow; what the CPU allows: empty tasks per second',
      measured: `${count(bySlots)}; ${withSpread(empty, count)}`,
      numbers: { bySlots, byCpu },
    }),
  ];
}
