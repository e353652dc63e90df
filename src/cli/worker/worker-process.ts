import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { WorkerHealth } from '../../worker/health.js';
import type { MetricsSnapshot } from '../../worker/metrics.js';
import { isOurs, type FromProcess, type ToProcess } from './messages.js';

export type ReadyMessage = Extract<FromProcess, { sluice: 'ready' }>;

export interface WorkerProcessOptions {
  readonly args: readonly string[];
  /** Nobody answers at the server's address yet. */
  readonly onWaiting: () => void;
  readonly onReady: (message: ReadyMessage, pid: number) => void;
}

/** How a process ended. */
export interface ProcessEnd {
  readonly how:
    | { readonly kind: 'left'; readonly why: 'too_old' | 'not_needed' }
    /** It said why it could not start. */
    | { readonly kind: 'failed'; readonly message: string }
    | { readonly kind: 'exited'; readonly code: number }
    | { readonly kind: 'killed'; readonly signal: string };
  readonly pid: number | undefined;
  readonly wasReady: boolean;
  readonly livedMs: number;
}

/** Its last messages may still be on their way when it is gone. */
const lastMessagesMs = 1_000;

/** One process of `sluice worker --processes`, seen from its parent. */
export class WorkerProcess {
  /** Resolves with true when it is ready or waits for a server, with false when it ended before. */
  readonly begun: Promise<boolean>;
  /** Resolves when it is gone. */
  readonly ended: Promise<ProcessEnd>;
  readonly #child: ChildProcess;
  readonly #options: WorkerProcessOptions;
  readonly #bornAt = performance.now();
  #resolveBegun: (begun: boolean) => void = () => undefined;
  #onSnapshot: () => void = () => undefined;
  #onHealth: (health: WorkerHealth) => void = () => undefined;
  #readingHealth: Promise<WorkerHealth | null> | null = null;
  #reading: Promise<void> | null = null;
  #snapshot: MetricsSnapshot = [];
  #isReady = false;
  #failure: string | null = null;
  #leaving: 'too_old' | 'not_needed' | null = null;

  constructor(options: WorkerProcessOptions) {
    this.#options = options;
    this.begun = new Promise((resolve) => {
      this.#resolveBegun = resolve;
    });
    const [, main = ''] = process.argv;
    this.#child = spawn(process.execPath, [...process.execArgv, main, ...options.args], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      // Metrics may be NaN, which JSON has no word for.
      serialization: 'advanced',
    });
    this.#child.on('error', () => undefined);
    this.#child.on('message', (message) => {
      if (isOurs(message)) this.#heed(message as FromProcess);
    });
    this.ended = this.#untilEnded();
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** The metrics that it told last. */
  get snapshot(): MetricsSnapshot {
    return this.#snapshot;
  }

  drain(): void {
    this.#send({ sluice: 'drain' });
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** Its metrics now, or as they were last if it does not answer in time. */
  async readMetrics(patienceMs: number): Promise<MetricsSnapshot> {
    if (this.#isReady) {
      this.#reading ??= this.#askForMetrics(patienceMs);
      await this.#reading;
    }
    return this.#snapshot;
  }

  /** Null: it does not answer in time. */
  readHealth(patienceMs: number): Promise<WorkerHealth | null> {
    this.#readingHealth ??= this.#askForHealth(patienceMs);
    return this.#readingHealth;
  }

  async #askForHealth(patienceMs: number): Promise<WorkerHealth | null> {
    const waiting = new AbortController();
    const answered = new Promise<WorkerHealth>((resolve) => {
      this.#onHealth = resolve;
    });
    this.#send({ sluice: 'health' });
    const gone = this.ended.then(() => null);
    const late = delay(patienceMs, null, waiting).catch(() => null);
    const health = await Promise.race([answered, gone, late]);
    waiting.abort();
    this.#readingHealth = null;
    return health;
  }

  async #askForMetrics(patienceMs: number): Promise<void> {
    const waiting = new AbortController();
    const answered = new Promise<void>((resolve) => {
      this.#onSnapshot = resolve;
    });
    this.#send({ sluice: 'metrics' });
    const late = delay(patienceMs, undefined, waiting).catch(() => undefined);
    await Promise.race([answered, this.ended, late]);
    waiting.abort();
    this.#reading = null;
  }

  #send(message: ToProcess): void {
    // One that is about to end does not hear it any more: its end tells.
    if (this.#child.connected) this.#child.send(message, () => undefined);
  }

  #heed(message: FromProcess): void {
    switch (message.sluice) {
      case 'waiting':
        this.#resolveBegun(true);
        this.#options.onWaiting();
        break;
      case 'ready':
        this.#isReady = true;
        this.#resolveBegun(true);
        this.#options.onReady(message, this.#child.pid ?? 0);
        break;
      case 'failed':
        this.#failure = message.message;
        break;
      case 'leaving':
        this.#leaving = message.why;
        break;
      case 'metrics':
        this.#snapshot = message.snapshot;
        this.#onSnapshot();
        break;
      case 'health':
        this.#onHealth(message.health);
    }
  }

  async #untilEnded(): Promise<ProcessEnd> {
    const how = await this.#untilGone();
    this.#resolveBegun(false);
    return {
      how,
      pid: this.#child.pid,
      wasReady: this.#isReady,
      livedMs: performance.now() - this.#bornAt,
    };
  }

  async #untilGone(): Promise<ProcessEnd['how']> {
    const disconnected = new Promise((resolve) => this.#child.once('disconnect', resolve));
    try {
      const [code, signal] = (await once(this.#child, 'exit')) as [number | null, string | null];
      if (this.#child.connected) await Promise.race([disconnected, delay(lastMessagesMs)]);
      if (this.#failure !== null) return { kind: 'failed', message: this.#failure };
      if (this.#leaving !== null && code === 0) return { kind: 'left', why: this.#leaving };
      return signal === null ? { kind: 'exited', code: code ?? 0 } : { kind: 'killed', signal };
    } catch (error) {
      // There was no room for another process.
      return { kind: 'failed', message: (error as Error).message };
    }
  }
}
