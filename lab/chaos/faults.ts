import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../test/support/until.js';
import type { FaultSpan } from './history.js';
import type { Fault } from './schedule.js';
import type { Stand } from './stand.js';

/** Ends a run in which something does not come back. */
const patienceMs = 120_000;

/** Makes the faults of a schedule at their times, and writes down how long each really lasted. */
export class Faults {
  readonly #stand: Stand;
  readonly #spans: FaultSpan[] = [];
  /** One after the other for each target: what is dead is not killed before it was started. */
  readonly #turns = new Map<string, Promise<void>>();
  #failure: Error | null = null;

  constructor(stand: Stand) {
    this.#stand = stand;
  }

  /** Never waits for anything to settle in between. Resolves when all is up again. */
  async run(
    schedule: readonly Fault[],
    onFault: (fault: Fault) => void,
  ): Promise<readonly FaultSpan[]> {
    const beganMs = performance.now();
    for (const fault of schedule) {
      await delay(Math.max(0, fault.atMs - (performance.now() - beganMs)));
      onFault(fault);
      this.#begin(fault);
    }
    await until(
      'everything to be up again',
      () => this.#failure !== null || this.#spans.length === schedule.length,
      { deadlineMs: patienceMs, everyMs: 50 },
    );
    if (this.#failure !== null) throw this.#failure;
    return this.#spans.toSorted((a, b) => a.from - b.from);
  }

  #begin(fault: Fault): void {
    const turn = fault.kind.startsWith('cut') ? `${fault.kind} ${fault.target}` : fault.target;
    const made = (this.#turns.get(turn) ?? Promise.resolve()).then(() => this.#make(fault));
    this.#turns.set(
      turn,
      made.catch((error: unknown) => {
        this.#failure ??= error as Error;
      }),
    );
  }

  async #make(fault: Fault): Promise<void> {
    const from = Date.now();
    await this.#disturb(fault);
    void this.#whenUp(fault).then(() => {
      const { kind, target } = fault;
      this.#spans.push({ kind, target, from, to: Date.now() });
    });
  }

  async #disturb({ kind, target, lastsMs }: Fault): Promise<void> {
    const { redis, postgres } = this.#stand.services ?? {};
    switch (kind) {
      case 'kill server':
      case 'kill worker':
        await this.#stand.process(target).kill();
        await delay(lastsMs);
        this.#stand.process(target).start();
        return;
      case 'freeze server':
      case 'freeze worker':
        this.#stand.process(target).signal('SIGSTOP');
        await delay(lastsMs);
        this.#stand.process(target).signal('SIGCONT');
        return;
      case 'cut worker':
      case 'cut redis':
      case 'cut postgres':
        this.#stand.line(kind, target).cut();
        await delay(lastsMs);
        this.#stand.line(kind, target).mend();
        return;
      case 'kill redis':
        await redis?.kill('SIGKILL');
        await delay(lastsMs);
        await redis?.restart();
        return;
      case 'freeze redis':
        await redis?.kill('SIGSTOP');
        await delay(lastsMs);
        await redis?.kill('SIGCONT');
        return;
      case 'flush redis':
        await this.#stand.flushRedis();
        return;
      case 'kill postgres':
        await postgres?.kill();
        await delay(lastsMs);
        await postgres?.restart();
    }
  }

  async #whenUp({ kind, target }: Fault): Promise<void> {
    if (kind === 'kill server' || kind === 'kill worker') {
      await this.#stand.process(target).ready();
    }
  }
}
