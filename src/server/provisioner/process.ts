import { setTimeout as delay } from 'node:timers/promises';
import type { Provisioner, Wish } from './provisioner.js';

/** A worker in a process of its own, seen from here. */
export interface WorkerProcessHandle {
  /** Once it is ready: what it does. */
  readonly taskTypes: readonly string[] | null;
  /** Resolves when it is gone: null when it left as it should, else with what happened to it. */
  readonly ended: Promise<string | null>;
  /** It takes nothing new, ends what it has, and leaves. */
  drain(): void;
  kill(): void;
}

export interface ProcessOptions {
  /** Names begin with it, and those of no other worker do. */
  readonly prefix: string;
  readonly start: (number: number) => WorkerProcessHandle;
  /** What a process gets to end what it has, and to leave, when this server ends. */
  readonly drainMs: number;
}

interface Started {
  readonly worker: WorkerProcessHandle;
  isDraining: boolean;
}

/**
 * Workers as processes of this machine. Only those that hold nothing are let go while this server
 * lives. One that ends by itself is replaced at the next request; the request after a crash says so, so
 * that whoever asks takes its time when they crash again and again.
 */
export class ProcessProvisioner implements Provisioner {
  readonly kind = 'process';
  readonly #options: ProcessOptions;
  readonly #started = new Map<number, Started>();
  #taskTypes: readonly string[] | null = null;
  #crash: string | null = null;

  constructor(options: ProcessOptions) {
    this.#options = options;
  }

  get taskTypes(): readonly string[] | null {
    const ready = [...this.#started.values()].map(({ worker }) => worker.taskTypes);
    this.#taskTypes = ready.find((types) => types !== null) ?? this.#taskTypes;
    return this.#taskTypes;
  }

  async request({ desired, current, names, idle }: Wish): Promise<void> {
    const staying = [...this.#started].filter(([, { isDraining }]) => !isDraining);
    const ours = names.filter((name) => name.startsWith(this.#options.prefix));
    const wanted = Math.max(0, desired - (current - ours.length));
    for (let count = staying.length; count < wanted; count++) this.#start();
    this.#letGo(staying, staying.length - wanted, idle);
    const crash = this.#crash;
    this.#crash = null;
    if (crash !== null) throw new Error(crash);
  }

  async stop(): Promise<void> {
    const started = [...this.#started.values()];
    if (started.length === 0) return;
    for (const { worker } of started) worker.drain();
    const ended = Promise.all(started.map(({ worker }) => worker.ended));
    const over = new AbortController();
    const late = delay(this.#options.drainMs, 'late', over).catch(() => null);
    if ((await Promise.race([ended, late])) === 'late') {
      for (const { worker } of started) worker.kill();
    }
    over.abort();
    await ended;
    this.#crash = null;
  }

  #nameOf(number: number): string {
    return `${this.#options.prefix}-${number}`;
  }

  #start(): void {
    let number = 1;
    while (this.#started.has(number)) number++;
    const started = { worker: this.#options.start(number), isDraining: false };
    this.#started.set(number, started);
    void started.worker.ended.then((crash) => {
      this.#taskTypes = started.worker.taskTypes ?? this.#taskTypes;
      this.#started.delete(number);
      if (crash !== null) this.#crash = `${this.#nameOf(number)} ${crash}`;
    });
  }

  /** Those that came last first: with `concentrate` they are the ones that have nothing to do. */
  #letGo(
    staying: readonly (readonly [number, Started])[],
    count: number,
    idle: readonly string[],
  ): void {
    const free = staying.filter(([number]) => idle.includes(this.#nameOf(number)));
    for (const [, started] of free.toReversed().slice(0, Math.max(0, count))) {
      started.isDraining = true;
      started.worker.drain();
    }
  }
}
