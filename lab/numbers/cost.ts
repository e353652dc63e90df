import { closeSync, existsSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { OneServer, type OneServerOptions } from '../hardening/one-server.js';
import { LabDatabase } from '../shared/database.js';
import type { Lab } from '../shared/lab.js';
import { median } from '../shared/measure.js';
import { count, judged, noted, withSpread, type Row, type Scenario } from '../shared/scenario.js';
import { Saturation } from './saturation.js';

const leastRatio = 0.97;
const scrapeEveryMs = 15_000;

export const cost: Scenario = {
  name: 'cost',
  about:
    'a flow at saturation, with all numbers, alerts and logs on, and with what can be off switched off; each server has one who scrapes it and one who follows its events',
  run: measure,
};

/** A server that takes its turn in every round. */
interface Side {
  readonly name: string;
  readonly args: readonly string[];
  readonly options: OneServerOptions;
}

async function measure(lab: Lab): Promise<readonly Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-cost-'));
  const logFile = openSync(join(folder, 'server.log'), 'w');
  try {
    const sides = sidesOf(lab.text('against'), logFile);
    return rowsOf(sides, await inRounds(lab, sides));
  } finally {
    closeSync(logFile);
    rmSync(folder, { recursive: true });
  }
}

function sidesOf(against: string | null, logFile: number): readonly Side[] {
  const off = ['--alert-interval-seconds', '0', '--log-transitions', 'off'];
  const sides = [
    { name: 'on', args: [], options: { logLevel: 'info', logFile } },
    { name: 'off', args: off, options: {} },
  ];
  if (against === null) return sides;
  const main = join(resolve(against), 'dist/cli/main.js');
  if (!existsSync(main)) throw new Error(`There is no ${main}: build that checkout first.`);
  return [...sides, { name: 'older', args: [], options: { main } }];
}

async function inRounds(lab: Lab, sides: readonly Side[]): Promise<readonly number[][]> {
  const stands: Stand[] = [];
  try {
    for (const side of sides) stands.push(await Stand.start(lab, side));
    return await takeTurns(lab, stands);
  } finally {
    for (const stand of stands) await stand.stop();
  }
}

/** For each round, tasks a second of each side. The side that begins changes from round to round. */
async function takeTurns(lab: Lab, stands: readonly Stand[]): Promise<readonly number[][]> {
  const seconds = lab.number('round-seconds');
  // What runs for the first time is compiled, and tables are empty.
  for (const stand of stands) await stand.round(seconds);
  const rounds: number[][] = [];
  for (let round = 0; round < lab.number('rounds'); round += 1) {
    const rates = stands.map(() => 0);
    for (let turn = 0; turn < stands.length; turn += 1) {
      const place = (round + turn) % stands.length;
      rates[place] = (await stands[place]?.round(seconds)) ?? 0;
    }
    rounds.push(rates);
    lab.progress.say(`round ${round + 1}: ${rates.map(count).join(', ')} tasks a second`);
  }
  return rounds;
}

function rowsOf(sides: readonly Side[], rounds: readonly number[][]): Row[] {
  const ratesOf = (place: number) => rounds.map((rates) => rates[place] ?? 0);
  const on = ratesOf(0);
  const rates = sides.map(({ name }, place) =>
    noted({
      what: `tasks a second, ${name}`,
      measured: withSpread(ratesOf(place), count),
      numbers: { rates: ratesOf(place) },
    }),
  );
  const ratios = sides.slice(1).map(({ name }, index) => {
    const other = ratesOf(index + 1);
    const ratio = on.map((rate, round) => rate / (other[round] ?? Number.NaN));
    const measured = withSpread(ratio, (value) => value.toFixed(3));
    const what = `on / ${name}, within a round: the median of ${rounds.length}`;
    return judged(
      { what, measured, numbers: { ratio } },
      `≥ ${leastRatio}`,
      median(ratio) >= leastRatio,
    );
  });
  return [...rates, ...ratios];
}

/** A server with a database of its own, and who watches it while it has its turn. */
class Stand {
  readonly #database: LabDatabase;
  readonly #server: OneServer;
  readonly #load: Saturation;
  readonly #stopBeating: () => Promise<void>;

  private constructor(database: LabDatabase, server: OneServer, load: Saturation) {
    this.#database = database;
    this.#server = server;
    this.#load = load;
    this.#stopBeating = load.keepBeating();
  }

  static async start(lab: Lab, side: Side): Promise<Stand> {
    const database = await LabDatabase.create(lab.postgresUrl);
    const args = ['--database-url', database.url, ...side.args];
    const server = await OneServer.start(args, side.options);
    return new Stand(database, server, await Saturation.at(server.url));
  }

  async round(seconds: number): Promise<number> {
    const stopping = new AbortController();
    const watching = [this.#follow(stopping.signal), this.#scrape(stopping.signal)];
    const rate = await this.#load.run(seconds);
    stopping.abort();
    await Promise.all(watching);
    return rate;
  }

  async #follow(signal: AbortSignal): Promise<void> {
    try {
      const { body } = await fetch(`${this.#server.url}/api/v1/events`, { signal });
      await body?.pipeTo(new WritableStream(), { signal });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** The first one in the middle of the first stretch. */
  async #scrape(signal: AbortSignal): Promise<void> {
    try {
      for (let waitMs = scrapeEveryMs / 2; ; waitMs = scrapeEveryMs) {
        await delay(waitMs, null, { signal });
        await (await fetch(`${this.#server.url}/metrics`)).arrayBuffer();
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  async stop(): Promise<void> {
    await this.#stopBeating();
    await this.#server[Symbol.asyncDispose]();
    await this.#database.drop();
  }
}
