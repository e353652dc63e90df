import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { TaskDraft } from '../../../src/protocol/tasks-api.js';
import { Child } from '../../shared/child.js';
import type { Lab } from '../../shared/lab.js';
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
import { Fleet } from '../../workers/fleet.js';

const script = join(import.meta.dirname, '../listeners.mjs');
const batch: readonly TaskDraft[] = Array.from({ length: 250 }, () => ({ taskType: 'noop' }));
const submitters = 4;
const beatEveryMs = 200;

interface Round {
  readonly tookMs: number;
  /** CPU of the server, in clock ticks. */
  readonly ticks: number;
  /** The slowest heartbeat. */
  readonly beatMs: number;
  readonly bytes: number;
  readonly closed: number;
}

export const listeners: Scenario = {
  name: 'listeners',
  about:
    'Tasks that do nothing, in rounds with and without 2,000 listeners of the event stream that have no filter',
  run: async (lab) => {
    const [rounds, tasks, crowd] = lab.size([7, 300_000, 2_000], [1, 2_000, 200]);
    await using fleet = await Fleet.start(lab.postgresUrl);
    await fleet.startWorker({ name: 'a', concurrency: 500 });
    await flow(fleet, tasks);
    const alone: Round[] = [];
    const beside: Round[] = [];
    for (let round = 0; round < rounds; round += 1) {
      lab.progress.say(`round ${round + 1} of ${rounds}`);
      alone.push(await flow(fleet, tasks));
      beside.push(await flowBeside(fleet, tasks, crowd));
    }
    return rowsOf(lab, alone, beside, crowd);
  },
};

async function flowBeside(fleet: Fleet, tasks: number, crowd: number): Promise<Round> {
  const child = new Child({ args: [script, new URL(fleet.url(0)).port, String(crowd)] });
  try {
    await child.ready;
    const before = (await child.ask('how many')) as Round;
    const round = await flow(fleet, tasks);
    const after = (await child.ask('how many')) as Round;
    return { ...round, bytes: after.bytes - before.bytes, closed: after.closed };
  } finally {
    await child.kill();
  }
}

/** Submits a fixed number of tasks, waits until all have ended, and heartbeats beside. */
async function flow(fleet: Fleet, tasks: number): Promise<Round> {
  const ticksBefore = ticksOf(fleet);
  const startedMs = performance.now();
  const ending = new AbortController();
  const beats = beat(fleet, ending.signal);
  await submit(fleet, tasks);
  await fleet.untilEmpty();
  const tookMs = performance.now() - startedMs;
  const ticks = ticksOf(fleet) - ticksBefore;
  ending.abort();
  return { tookMs, ticks, beatMs: await beats, bytes: 0, closed: 0 };
}

/** User and system time, from Linux. */
function ticksOf({ serverPids: [pid] }: Fleet): number {
  const [, fields = ''] = readFileSync(`/proc/${pid ?? 0}/stat`, 'utf8').split(') ');
  const [user = 0, system = 0] = fields.split(' ').slice(11, 13).map(Number);
  return user + system;
}

async function submit(fleet: Fleet, tasks: number): Promise<void> {
  let left = tasks / batch.length;
  const submitter = async () => {
    while (left > 0) {
      left -= 1;
      await fleet.submit(batch);
    }
  };
  await Promise.all(Array.from({ length: submitters }, submitter));
}

async function beat(fleet: Fleet, signal: AbortSignal): Promise<number> {
  const api = fleet.api();
  const { workerId } = await api.register({ taskTypes: ['never'] });
  let most = 0;
  while (!signal.aborted) {
    const sentAt = performance.now();
    await api.heartbeat(workerId, { currentLoad: 0, status: 'active' });
    most = Math.max(most, performance.now() - sentAt);
    await delay(beatEveryMs);
  }
  await api.deregister(workerId);
  return most;
}

function rowsOf(lab: Lab, alone: readonly Round[], beside: readonly Round[], crowd: number): Row[] {
  const ratios = beside.map(({ tookMs }, n) => (alone[n]?.tookMs ?? 0) / tookMs);
  const cpu = beside.map(({ ticks }, n) => ticks / (alone[n]?.ticks ?? 1));
  const beats = beside.map(({ beatMs }) => beatMs);
  const closed = beside.reduce((sum, round) => sum + round.closed, 0);
  const bytes = beside.map((round) => round.bytes);
  return [
    judged(
      {
        what: `tasks a second with ${count(crowd)} listeners, as a share of the round before without`,
        measured: withSpread(ratios, percent),
        numbers: {
          ratios,
          alone: alone.map(({ tookMs }) => tookMs),
          beside: beside.map(({ tookMs }) => tookMs),
        },
      },
      lab.size('≥ 95 %', 'some'),
      median(ratios) >= lab.size(0.95, 0.1),
    ),
    judged(
      {
        what: 'the slowest heartbeat beside them',
        measured: ms(Math.max(...beats)),
        numbers: { beats },
      },
      '< 1 s',
      Math.max(...beats) < 1_000,
    ),
    noted({
      what: 'CPU of the server, with listeners as a share of without',
      measured: withSpread(cpu, percent),
      numbers: { cpu },
    }),
    noted({
      what: 'bytes that all listeners got in a round; listeners that were cut off',
      measured: `${count(median(bytes))}; ${closed}`,
      numbers: { bytes, closed },
    }),
  ];
}
