import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Contender } from './contenders.js';
import type { Values } from './measures.js';
import { ProcessTree } from '../../lab/shared/process-tree.js';
import type { Services } from './services.js';
import { quantile } from './summary.js';

export interface Sizes {
  readonly tasks: number;
  /** Single ones. */
  readonly submits: number;
  /** Of the time from submit to start. */
  readonly samples: number;
  /** The same for all, before anything is measured: in bulk, and as many singly. */
  readonly warmUp: number;
}

export interface Outcome {
  readonly values: Values;
  readonly twice: number;
}

interface SideResult {
  readonly bulkPerSecond: number;
  readonly processPerSecond: number;
  readonly submitsPerSecond: number;
  readonly latenciesMs: readonly number[];
  readonly twice: number;
}

type Message =
  | { readonly kind: 'step'; readonly name: string }
  | { readonly kind: 'mark'; readonly name: 'begin' | 'end' }
  | { readonly kind: 'result'; readonly result: SideResult };

const side = join(import.meta.dirname, 'side.mjs');
const patienceMs = 10 * 60_000;
const sampleEveryMs = 200;
const errorCharacters = 4_000;

/** One round of one contender: a process, a database and a Redis of its own. */
export async function runContender(
  contender: Contender,
  { node, sizes, services }: { node: string; sizes: Sizes; services: Services },
  onStep: (step: string) => void,
): Promise<Outcome> {
  const { postgresUrl } = await services.renew();
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
  const { module, variant, durableRedis } = contender;
  const redisUrl = durableRedis ? services.durableRedisUrl : services.redisUrl;
  const given = { module, variant, postgresUrl, redisUrl, folder, ...sizes };
  const child = spawn(node, [side, JSON.stringify(given)], {
    env: { ...withoutSettings(process.env), NODE_ENV: 'production' },
    // A group of its own: whatever it has started ends with it.
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  const tidy = () => {
    endGroup(child);
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  };
  process.once('exit', tidy);
  try {
    return await follow(child, contender, sizes, services, onStep);
  } finally {
    process.off('exit', tidy);
    tidy();
  }
}

function follow(
  child: ChildProcess,
  { title }: Contender,
  sizes: Sizes,
  services: Services,
  onStep: (step: string) => void,
): Promise<Outcome> {
  const usage = new Usage(new ProcessTree(child.pid ?? null), services.processes);
  let step = 'start';
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-errorCharacters);
  });
  return new Promise<Outcome>((resolve, reject) => {
    let result: SideResult | null = null;
    const fail = (why: string) => {
      reject(new Error(`${title} ${why} at "${step}"${errors === '' ? '' : `:\n${errors}`}`));
    };
    const patience = setTimeout(() => fail('did not end'), patienceMs);
    child.on('message', (message: Message) => {
      if (message.kind === 'result') {
        result = message.result;
      } else if (message.kind === 'mark') {
        usage.mark(message.name);
        child.send('read');
      } else {
        step = message.name;
        onStep(step);
      }
    });
    child.on('error', reject);
    child.on('exit', (code, signal) => {
      clearTimeout(patience);
      usage.stop();
      if (result === null) fail(`ended with ${signal ?? code}`);
      else resolve({ values: toValues(result, usage, sizes), twice: result.twice });
    });
  });
}

/** From the first to the last mark. */
class Usage {
  readonly #own: ProcessTree;
  readonly #services: readonly ProcessTree[];
  #sampling: NodeJS.Timeout | undefined;
  ownCpu = 0;
  serviceCpu = 0;
  ownMemory = Number.NaN;
  serviceMemory = Number.NaN;

  constructor(own: ProcessTree, services: readonly ProcessTree[]) {
    this.#own = own;
    this.#services = services;
  }

  mark(name: 'begin' | 'end'): void {
    const sign = name === 'begin' ? -1 : 1;
    this.ownCpu += sign * this.#own.cpuSeconds();
    this.serviceCpu += sign * this.#sum((tree) => tree.cpuSeconds());
    this.#sample();
    if (name === 'begin') this.#sampling = setInterval(() => this.#sample(), sampleEveryMs);
    else this.stop();
    if (name === 'end') this.ownMemory = this.#own.peakMegabytes();
  }

  stop(): void {
    clearInterval(this.#sampling);
  }

  #sample(): void {
    const now = this.#sum((tree) => tree.megabytes());
    this.serviceMemory = Number.isNaN(this.serviceMemory) ? now : Math.max(this.serviceMemory, now);
  }

  #sum(amount: (tree: ProcessTree) => number): number {
    return this.#services.reduce((sum, tree) => sum + amount(tree), 0);
  }
}

function toValues(result: SideResult, usage: Usage, { tasks }: Sizes): Values {
  const per100k = 100_000 / tasks;
  return {
    bulk: result.bulkPerSecond,
    process: result.processPerSecond,
    submit: result.submitsPerSecond,
    startP50: quantile(result.latenciesMs, 0.5),
    startP99: quantile(result.latenciesMs, 0.99),
    ownCpu: usage.ownCpu * per100k,
    serviceCpu: usage.serviceCpu * per100k,
    ownMemory: usage.ownMemory,
    serviceMemory: usage.serviceMemory,
  };
}

function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended, with all that it started.
  }
}

/** What this shell says about a server of the user's is not meant for ours. */
function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const ofUser = (name: string) =>
    name === 'DATABASE_URL' || name === 'REDIS_URL' || name.startsWith('SLUICE_');
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ofUser(name)));
}
