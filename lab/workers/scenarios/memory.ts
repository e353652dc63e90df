import { setTimeout as delay } from 'node:timers/promises';
import { getFreePort } from '../../../test/support/services/free-port.js';
import { count, judged, percent, seconds, type Row, type Scenario } from '../../shared/scenario.js';
import { Fleet, steps, type FleetWorker } from '../fleet.js';
import { processMegabytes } from '../process-memory.js';

const limitMb = 400;
const heldShare = 0.87;
const pressingShare = 0.8;
const recoveredShare = 0.9;
const recoveryMs = 60_000;
/** A worker that is never busy asks for as much as it may. */
const load = { tasks: 10, ms: 20, everyMs: 50 };
const concurrency = 100;

export const memory: Scenario = {
  name: 'memory',
  about:
    'a worker that may use 400 MB (--memory-limit), while a handler holds memory until 87 % of it are used',
  run: async (lab) => {
    await using fleet = await Fleet.start(lab.postgresUrl);
    const port = await getFreePort();
    const args = ['--memory-limit', String(limitMb), '--metrics-port', String(port)];
    const worker = await fleet.startWorker({ name: 'one', concurrency, args });
    const feeding = new Feeding(fleet);
    const pressed = await press(fleet, worker, port, lab.size(6_000, 3_000));
    const submitted = await feeding.stop();
    await fleet.untilEmpty();
    const completed = await fleet.countCompleted();
    const { code } = await worker.process.terminate();
    return [...rowsOf(pressed), survivalRow(completed, submitted + 1, code)];
  },
};

interface Pressed {
  readonly before: number;
  readonly during: number;
  readonly share: number;
  /** What it asked for last, and how long after the end of the handler. */
  readonly after: number;
  readonly afterMs: number;
}

async function press(
  fleet: Fleet,
  { process }: FleetWorker,
  port: number,
  phaseMs: number,
): Promise<Pressed> {
  const share = () => processMegabytes(process.pid, 'VmRSS') / limitMb;
  await delay(1_000);
  const before = await claimSizeWithin(port, phaseMs);
  const bytes = limitMb * heldShare * 2 ** 20;
  // It holds on for the poll that it is claimed with, and for a while that nobody measures.
  await fleet.submit([{ taskType: 'hold', parameters: { bytes, ms: phaseMs + 3_000 } }]);
  await fleet.note('the memory to be held', ({ what }) => what === 'holds');
  await delay(1_000);
  const during = await claimSizeWithin(port, phaseMs);
  const heldNow = share();
  const { at } = await fleet.note('the handler to end', isEndOfHold(fleet));
  let after = 0;
  while (after < recoveredShare * before && Date.now() - at < recoveryMs) {
    after = await claimSizeWithin(port, 1_000);
  }
  return { before, during, share: heldNow, after, afterMs: Date.now() - at };
}

function isEndOfHold(fleet: Fleet) {
  const held = fleet.notes().find(({ what }) => what === 'holds')?.taskId;
  return ({ what, taskId }: { what: string; taskId: string }) =>
    what === 'ended' && taskId === held;
}

/** How many tasks a poll asked for on average, in the time to come. */
async function claimSizeWithin(port: number, durationMs: number): Promise<number> {
  const from = await claimSizes(port);
  await delay(durationMs);
  const to = await claimSizes(port);
  return (to.sum - from.sum) / (to.count - from.count);
}

async function claimSizes(port: number): Promise<{ sum: number; count: number }> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  const text = await response.text();
  const read = (name: string) => {
    const found = new RegExp(`^sluice_worker_claim_request_size_${name} (\\S+)$`, 'm').exec(text);
    return Number(found?.[1] ?? NaN);
  };
  return { sum: read('sum'), count: read('count') };
}

/** Some tasks every now and then, until stopped. */
class Feeding {
  readonly #fleet: Fleet;
  readonly #ending = new AbortController();
  readonly #done: Promise<number>;

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
    this.#done = this.#feed();
  }

  /** How many there were. */
  stop(): Promise<number> {
    this.#ending.abort();
    return this.#done;
  }

  async #feed(): Promise<number> {
    let submitted = 0;
    while (!this.#ending.signal.aborted) {
      await this.#fleet.submit(steps(load.tasks, load.ms));
      submitted += load.tasks;
      await delay(load.everyMs);
    }
    return submitted;
  }
}

function rowsOf({ before, during, share, after, afterMs }: Pressed): Row[] {
  return [
    judged(
      {
        what: `tasks that a poll asks for on average: before; at ${percent(share, 0)} of the limit`,
        measured: `${before.toFixed(1)}; ${during.toFixed(1)}`,
        numbers: { before, during, share },
      },
      'less than 0.6 of it',
      share > pressingShare && during < 0.6 * before,
    ),
    judged(
      {
        what: 'and when the handler has ended; so long after it',
        measured: `${after.toFixed(1)}; ${seconds(afterMs)}`,
        numbers: { after, afterMs },
      },
      `${recoveredShare} of it; ≤ ${seconds(recoveryMs)}`,
      after >= recoveredShare * before,
    ),
  ];
}

function survivalRow(completed: number, submitted: number, code: number | null): Row {
  return judged(
    {
      what: 'completed; exit code of the worker in the end',
      measured: `${count(completed)}; ${String(code)}`,
      numbers: { completed, submitted },
    },
    `${count(submitted)}; 0`,
    completed === submitted && code === 0,
  );
}
