import type { Clock } from '../../src/runtime/clock.js';
import type { Failure } from './job.js';
import { drainAll } from './drain-all.js';
import { setUpQueues } from './queue-steps.js';
import { Random } from './random.js';
import { WatchedReadyQueue } from './server.js';
import { resetStage, type Stage } from './stage.js';
import { drawStep } from './steps.js';
import { submit } from './task-steps.js';
import { World } from './world.js';
import { hire } from './worker-steps.js';

export interface SeedOptions {
  readonly seed: number;
  readonly steps: number;
  /** Steps that are left out. */
  readonly without?: ReadonlySet<number>;
  readonly print?: (line: string) => void;
  readonly sabotage?: Sabotage;
}

/** A bug on purpose: whether it is found shows what the checks are worth. */
export interface Sabotage {
  readonly makeReady?: (options: { readonly clock: Clock }) => WatchedReadyQueue;
  /** After every step. */
  readonly afterStep?: (world: World) => Promise<void>;
  /** What it left behind. */
  readonly undo?: string;
}

export interface SeedResult {
  readonly tasks: number;
  readonly virtualMs: number;
  readonly moves: Readonly<Record<string, number>>;
  readonly trace: readonly string[];
  /** Null: nothing was broken. */
  readonly failure: Failure | null;
}

const firstWorkers = 3;
const firstSubmits = 3;

/** One life of a small cluster, from an empty database until all tasks have ended. */
export async function runSeed(stage: Stage, options: SeedOptions): Promise<SeedResult> {
  const { seed, steps, sabotage = {}, print = null } = options;
  await resetStage(stage, seed);
  const makeReady = sabotage.makeReady ?? ((given) => new WatchedReadyQueue(given));
  const world = new World({ stage, seed, print, makeReady });
  const beganMs = world.nowMs;
  let at: Failure['step'] = 0;
  let failure: Failure | null = null;
  try {
    await begin(world, new Random(seed, 0));
    for (at = 1; at <= steps; at++) {
      if (options.without?.has(at) !== true) await takeStep(world, seed, at);
      await sabotage.afterStep?.(world);
    }
    at = 'drain';
    await drainAll(world);
  } catch (error) {
    failure = { step: at, message: error instanceof Error ? messageOf(error) : String(error) };
  }
  for (const server of [...world.servers]) server.crash();
  await stage.time.pass(0);
  if (sabotage.undo !== undefined) await stage.db.urgent.run(sabotage.undo);
  const { tasks, moves } = world.tasks;
  const virtualMs = world.nowMs - beganMs;
  return { tasks: tasks.length, virtualMs, moves, trace: world.trace.lines, failure };
}

async function begin(world: World, random: Random): Promise<void> {
  const server = world.launch();
  await world.pass(100);
  setUpQueues(world, server, random);
  for (let n = 0; n < firstWorkers; n++) hire(world, random);
  for (let n = 0; n < firstSubmits; n++) submit(world, random);
  await world.pass(100);
}

/** Some steps are taken before the one before has ended. */
async function takeStep(world: World, seed: number, at: number): Promise<void> {
  const random = new Random(seed, at);
  const step = drawStep(random);
  world.trace.note(`${at} ${step.name}`);
  await step.take(world, random);
  if (random.chance(0.3)) return;
  await (random.chance(0.5) ? world.check() : world.pass(random.whole(1, 300)));
}

function messageOf(error: Error): string {
  return error.name === 'Violation' ? error.message : (error.stack ?? error.message);
}
