import { setTimeout as delay } from 'node:timers/promises';
import { AnsweringProxy, html } from '../../test/support/answering-proxy.js';
import { until } from '../../test/support/until.js';
import { seededRandom } from '../shared/measure.js';
import type { Driver } from './driver.js';
import type { FaultSpan, Retune } from './history.js';
import type { Fault } from './schedule.js';
import type { Stand } from './stand.js';
import { retuned } from './workload.js';

/** Ends a run in which something does not come back. */
const patienceMs = 120_000;
/** How long starts are watched after a change that was made while Redis hung. */
const watchedMs = 2_000;
/** A server that was frozen when a change was sent to it may carry it out this much later. */
const lateChangeMs = 15_000;

/** What a load balancer or an access proxy answers while it does not find the server. */
const misleadingStatuses = [404, 401, 403, 400];

/** Makes the faults of a schedule at their times, and writes down how long each really lasted. */
export class Faults {
  readonly retunes: Retune[] = [];
  readonly #stand: Stand;
  readonly #driver: Driver;
  /** Until then the queue may be set to its higher bound by a request that was not answered. */
  #isUncertainUntil = 0;
  readonly #spans: FaultSpan[] = [];
  /** One after the other for each target: what is dead is not killed before it was started. */
  readonly #turns = new Map<string, Promise<void>>();
  #failure: Error | null = null;

  constructor(stand: Stand, driver: Driver) {
    this.#stand = stand;
    this.#driver = driver;
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
    const turn = turnOf(fault);
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

  async #disturb({ kind, target, atMs, lastsMs }: Fault): Promise<void> {
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
      case 'mislead worker':
        await this.#mislead(target, lastsMs);
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
      case 'hang redis':
        await this.#changeWhileHung(lastsMs);
        return;
      case 'flush redis':
        await this.#stand.flushRedis();
        return;
      case 'erase redis':
        await this.#stand.eraseOneKey(seededRandom(atMs));
        return;
      case 'lock postgres':
        await postgres?.lockTasks(lastsMs);
        return;
      case 'kill postgres':
        await postgres?.kill();
        await delay(lastsMs);
        await postgres?.restart();
    }
  }

  /** A proxy between the worker and its server answers in the server's place. */
  async #mislead(target: string, lastsMs: number): Promise<void> {
    const line = this.#stand.line('cut worker', target);
    await using proxy = await AnsweringProxy.start(line.url);
    proxy.judge = () => html(misleadingStatuses[proxy.answered % misleadingStatuses.length] ?? 404);
    line.divert(Number(new URL(proxy.url).port));
    await delay(lastsMs);
    line.mend();
  }

  async #changeWhileHung(lastsMs: number): Promise<void> {
    const { queue, tight, wide } = retuned;
    const { redis } = this.#stand.services ?? {};
    await redis?.kill('SIGSTOP');
    const [from] = await Promise.all([
      this.#driver.change(queue, { maxConcurrency: tight }).then(() => Date.now()),
      delay(lastsMs).then(() => redis?.kill('SIGCONT')),
    ]);
    await delay(watchedMs);
    const isCertain = from > this.#isUncertainUntil;
    if (isCertain) this.retunes.push({ queue, most: tight, from, to: Date.now() });
    const sent = await this.#driver.change(queue, { maxConcurrency: wide });
    if (sent > 1) this.#isUncertainUntil = Date.now() + lateChangeMs;
  }

  async #whenUp({ kind, target }: Fault): Promise<void> {
    if (kind === 'kill server' || kind === 'kill worker') {
      await this.#stand.process(target).ready();
    }
  }
}

/** Faults of one turn are made one after the other. A misled worker uses the line that a cut ends. */
function turnOf({ kind, target }: Fault): string {
  if (kind === 'mislead worker') return `cut worker ${target}`;
  return kind.startsWith('cut') ? `${kind} ${target}` : target;
}
