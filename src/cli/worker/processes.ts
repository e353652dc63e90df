import { setTimeout as delay } from 'node:timers/promises';
import type { WorkerHealth } from '../../worker/health.js';
import type { MetricsSnapshot } from '../../worker/metrics.js';
import { CliError } from '../failure.js';
import { printNote } from '../output.js';
import { countCrash, restartDelayMs } from './restart-delay.js';
import { WorkerProcess, type ProcessEnd, type ReadyMessage } from './worker-process.js';

export interface ProcessesOptions {
  readonly count: number;
  readonly nameOf: (number: number) => string;
  readonly argsOf: (number: number) => readonly string[];
  readonly drainTimeoutMs: number;
  /** Once, when all of them are ready for the first time. */
  readonly onReady: (message: ReadyMessage) => void;
  /** Once, when the first of them finds no server. */
  readonly onWaiting: () => void;
  /** What a process that is gone had counted. */
  readonly onGone: (snapshot: MetricsSnapshot) => void;
}

/** What a process may take beyond the drain itself: to unwind, to send results, to say goodbye. */
const graceMs = 20_000;
/** A process whose event loop runs answers at once. */
const healthPatienceMs = 1_000;

/** The processes of a worker: those that crash are started again, and all drain together. */
export class Processes {
  readonly #options: ProcessesOptions;
  readonly #running = new Map<number, WorkerProcess>();
  readonly #everReady = new Set<number>();
  /** Not needed any more, and not replaced. */
  readonly #left = new Set<number>();
  readonly #failedAtFirst = new Set<number>();
  readonly #stopping = new AbortController();
  /** Of each first start, whether it came to anything. */
  #begun: Promise<readonly boolean[]> = Promise.resolve([]);
  #ended: Promise<unknown> | null = null;
  #isWaiting = false;
  /** How often a process was started again after a crash. */
  restarts = 0;
  /** Whether a process crashed, or had to be killed, while it drained. */
  drainFailed = false;

  constructor(options: ProcessesOptions) {
    this.#options = options;
  }

  get ready(): number {
    return [...this.#running.values()].filter(({ isReady }) => isReady).length;
  }

  /** Resolves when all have left; rejects when none of them can start. */
  async run(): Promise<void> {
    const numbers = Array.from({ length: this.#options.count }, (_, index) => index + 1);
    const first = numbers.map((number) => [number, this.#start(number)] as const);
    this.#begun = Promise.all(first.map(([, { begun }]) => begun));
    this.#ended = Promise.all(first.map(([number, each]) => this.#keepRunning(number, each)));
    await this.#ended;
  }

  /** All drain; who takes too long is killed. Resolves when all are gone. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const running of this.#running.values()) running.drain();
    const waiting = new AbortController();
    const patienceMs = this.#options.drainTimeoutMs + graceMs;
    const late = delay(patienceMs, 'late', waiting).catch(() => undefined);
    if ((await Promise.race([this.#ended, late])) === 'late') this.#killLate(patienceMs);
    waiting.abort();
    await this.#ended;
  }

  killAll(): void {
    for (const running of this.#running.values()) running.kill();
  }

  readMetrics(patienceMs: number): Promise<MetricsSnapshot[]> {
    return Promise.all([...this.#running.values()].map((each) => each.readMetrics(patienceMs)));
  }

  /** Healthy when all of them are; the first fault that is found is told. */
  async readHealth(): Promise<WorkerHealth> {
    const numbers = Array.from({ length: this.#options.count }, (_, index) => index + 1);
    const wanted = numbers.filter(
      (number) => this.#running.has(number) || !(this.#left.has(number) || this.#isStopping()),
    );
    const all = await Promise.all(wanted.map((number) => this.#readHealthOf(number)));
    return (
      all.find(({ isHealthy }) => !isHealthy) ??
      all.find(({ isReady }) => !isReady) ?? { isHealthy: true, isReady: true, reason: null }
    );
  }

  async #readHealthOf(number: number): Promise<WorkerHealth> {
    const name = this.#options.nameOf(number);
    const running = this.#running.get(number);
    if (running === undefined) return unhealthy(`${name} does not run.`);
    if (!running.isReady) return unhealthy(`${name} has not registered at its server yet.`);
    const health = await running.readHealth(healthPatienceMs);
    if (health === null) return unhealthy(`${name} does not answer: its event loop is blocked.`);
    return { ...health, reason: health.reason === null ? null : `${name}: ${health.reason}` };
  }

  #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  #start(number: number): WorkerProcess {
    const { argsOf, onWaiting } = this.#options;
    const started = new WorkerProcess({
      args: argsOf(number),
      onWaiting: () => {
        if (!this.#isWaiting) onWaiting();
        this.#isWaiting = true;
      },
      onReady: (message, pid) => this.#greet(number, message, pid),
    });
    this.#running.set(number, started);
    return started;
  }

  #greet(number: number, message: ReadyMessage, pid: number): void {
    const { count, nameOf, onReady } = this.#options;
    if (this.#everReady.has(number)) {
      printNote(`${nameOf(number)} is ready again (pid ${pid})`);
      return;
    }
    this.#everReady.add(number);
    if (this.#everReady.size === count) onReady(message);
  }

  async #keepRunning(number: number, first: WorkerProcess): Promise<void> {
    let running: WorkerProcess | null = first;
    let crashes = 0;
    while (running !== null) {
      const end: ProcessEnd = await running.ended;
      this.#running.delete(number);
      this.#options.onGone(running.snapshot);
      crashes = end.how.kind === 'left' ? 0 : countCrash(crashes, end.livedMs);
      running = (await this.#isReplaced(number, end, crashes)) ? this.#start(number) : null;
    }
  }

  /** Resolves when it is time for another, or there is to be none. */
  async #isReplaced(number: number, end: ProcessEnd, crashes: number): Promise<boolean> {
    if (this.#isStopping()) {
      this.#noteDrain(end);
      return false;
    }
    if (end.how.kind === 'left') {
      this.#say(number, end);
      if (end.how.why === 'not_needed') this.#left.add(number);
      return end.how.why === 'too_old';
    }
    await this.#judgeStart(number, end);
    if (this.#isStopping()) return false;
    await this.#waitAfterCrash(number, end, crashes);
    if (this.#isStopping()) return false;
    this.restarts += 1;
    return true;
  }

  #noteDrain({ how, wasReady }: ProcessEnd): void {
    const isClean = how.kind === 'left' || (how.kind === 'exited' && how.code === 0);
    // One that was not ready yet had nothing to drain.
    if (wasReady && !isClean) this.drainFailed = true;
  }

  /** When no process could start, the reason is the same for all, and will be at the next try. */
  async #judgeStart(number: number, { how, wasReady }: ProcessEnd): Promise<void> {
    if (wasReady || how.kind === 'killed') return;
    this.#failedAtFirst.add(number);
    const begun = await this.#begun;
    const isHopeless = !begun.includes(true) || this.#failedAtFirst.size === this.#options.count;
    if (!isHopeless || this.#everReady.size > 0 || this.#isStopping()) return;
    throw new CliError(
      how.kind === 'failed' ? how.message : `No process could start: each ${describe(how)}.`,
    );
  }

  async #waitAfterCrash(number: number, end: ProcessEnd, crashes: number): Promise<void> {
    const delayMs = restartDelayMs(crashes, Math.random());
    this.#say(number, end, `; starting it again in ${(delayMs / 1000).toFixed(1)} s`);
    await delay(delayMs, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
  }

  #say(number: number, { how, pid = 0 }: ProcessEnd, next = ''): void {
    const why = how.kind === 'failed' ? `: ${how.message}` : '';
    printNote(`${this.#options.nameOf(number)} (pid ${pid}) ${describe(how)}${next}${why}`);
  }

  #killLate(patienceMs: number): void {
    this.drainFailed = true;
    for (const [number, running] of this.#running) {
      const name = this.#options.nameOf(number);
      printNote(`${name} (pid ${running.pid ?? 0}) did not end in ${patienceMs / 1000} s: killed`);
      running.kill();
    }
  }
}

function unhealthy(reason: string): WorkerHealth {
  return { isHealthy: false, isReady: false, reason };
}

function describe(how: ProcessEnd['how']): string {
  switch (how.kind) {
    case 'killed':
      return `was killed by ${how.signal}`;
    case 'exited':
      return `ended with exit code ${how.code}`;
    case 'failed':
      return 'could not start';
    case 'left':
      return how.why === 'too_old'
        ? 'has reached its lifetime; starting another'
        : 'has left: it is not needed any more';
  }
}
