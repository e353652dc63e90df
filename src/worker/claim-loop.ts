import {
  claimSize,
  defaultClaimBatch,
  memoryState,
  type MemoryState,
} from '../domain/claim-size.js';
import { bounds } from '../protocol/bounds.js';
import { asLogged, pause } from './backoff.js';
import { tell, type WorkerObserver } from './observer.js';
import { PollLoop, type Polled, type PollOptions } from './poll-loop.js';
import type { PressureGauge } from './pressure.js';
import type { Reports } from './reports.js';

export interface ClaimOptions extends PollOptions {
  readonly reports: Reports;
  readonly pressure: PressureGauge;
  readonly observer: WorkerObserver | undefined;
  /** Tasks that one claim asks for at most. */
  readonly claimBatch: number;
}

/** Until there is work, or only whether there is some now. */
type PollMode = 'wait' | 'look';

const fewPolls = 4;
/** Claims that would be sent at once are sent as one: a request costs as much as some ten tasks. */
const claimsTogether = 4;
/** Until what was claimed shows in the memory. */
const memoryPauseMs = 100;

/**
 * Asks for as many tasks as there are open slots. One poll waits for work; the next is on its way as
 * soon as it was answered, while its tasks run. Slots are promised to a poll when it is sent, so that
 * all polls together never bring more than can start.
 */
export class ClaimLoop extends PollLoop {
  readonly #claims: ClaimOptions;
  readonly #further = new Set<Promise<void>>();
  readonly #maxTogether: number;
  readonly #maxPolls: number;
  readonly #worthwhile: number;
  #furthering: Promise<void> | null = null;
  #polls = 0;
  #isWaiting = false;
  /** The last answer held all that was asked for: there may be more. */
  #wasFull = false;
  #broughtTasks = false;

  constructor(options: ClaimOptions) {
    super(options);
    this.#claims = options;
    const { size } = options.slots;
    const maxTogether = Math.min(claimsTogether * options.claimBatch, bounds.pollTasks);
    this.#maxTogether = maxTogether;
    // The one that waits, and as many as fill all slots: what they bring is claimed together.
    this.#maxPolls = Math.max(fewPolls, 1 + Math.ceil(size / maxTogether));
    // With less than its part of the slots, a poll more would only make all of them smaller.
    this.#worthwhile = Math.min(maxTogether, Math.ceil(size / fewPolls));
  }

  override start(): void {
    super.start();
    this.#furthering = this.#sendFurther();
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.#furthering;
    await Promise.all(this.#further);
  }

  protected override async pollOnce(): Promise<void> {
    const { slots } = this.#claims;
    const { signal } = this.stopping;
    await slots.whenOpen(signal);
    await this.#whenRoom(signal);
    await this.#whenMemory(signal);
    const { claimBatch, pressure } = this.#claims;
    const asked = claimSize(slots.open, pressure.read(), claimBatch);
    if (signal.aborted || asked === 0) return;
    await this.#claim(asked, 'wait');
  }

  /**
   * At high rates one poll at a time would cap the worker at a batch per round trip. Further ones do
   * not wait for work: there is never more than one that does, and when there is no more they end.
   */
  async #sendFurther(): Promise<void> {
    const { slots, pressure } = this.#claims;
    const { signal } = this.stopping;
    while (!signal.aborted) {
      await slots.when(() => this.#couldUseMore(), signal);
      if (!this.#couldUseMore()) continue;
      const felt = pressure.read();
      const asked = Math.min(slots.open, this.#maxTogether);
      // Under pressure one poll at a time: many small ones would be a large one.
      const isPressed =
        memoryState(felt) !== 'fine' || claimSize(defaultClaimBatch, felt) < defaultClaimBatch;
      if (isPressed) this.#wasFull = false;
      else this.#claimFurther(asked);
    }
  }

  #couldUseMore(): boolean {
    return (
      !this.stopping.signal.aborted &&
      this.#isWaiting &&
      this.#wasFull &&
      this.#polls < this.#maxPolls &&
      this.#claims.slots.open >= this.#worthwhile &&
      this.#claims.reports.hasRoom
    );
  }

  #claimFurther(asked: number): void {
    const claiming = this.#claim(asked, 'look')
      .catch((error: unknown) => {
        // The poll that waits meets the same trouble, and waits until it is over.
        if (!this.stopping.signal.aborted) {
          this.#claims.log.debug(asLogged(error), 'a further poll failed');
        }
      })
      .finally(() => this.#further.delete(claiming));
    this.#further.add(claiming);
  }

  async #claim(asked: number, mode: PollMode): Promise<void> {
    const { slots, onAnswer, observer, log } = this.#claims;
    this.#polls += 1;
    if (mode === 'wait') this.#isWaiting = true;
    slots.promise(asked);
    let answer: Polled;
    try {
      answer = await this.poll(asked, mode === 'wait' ? this.longWaitMs : 0);
    } catch (error) {
      this.#settle(asked, 0, mode);
      throw error;
    }
    const received = answer.tasks.length;
    // One after the other without a pause: nobody else may be promised the slots in between.
    this.#settle(asked, received, mode);
    onAnswer(answer);
    tell(log, () => observer?.claimed(asked, received));
  }

  #settle(asked: number, received: number, mode: PollMode): void {
    this.#polls -= 1;
    if (mode === 'wait') this.#isWaiting = false;
    this.#wasFull = received === asked;
    this.#broughtTasks = received > 0;
    this.#claims.slots.redeem(asked);
  }

  /** Results that wait for the server are kept in memory: no more tasks until there is room. */
  async #whenRoom(signal: AbortSignal): Promise<void> {
    const { reports, slots } = this.#claims;
    if (reports.hasRoom) return;
    slots.heldUp = true;
    await reports.whenRoom(signal);
    slots.heldUp = false;
  }

  /**
   * High memory: a moment between two claims, so that what the first one brought is seen before the
   * next. Critical: nothing while anything runs, so that a worker can always do one task at a time.
   */
  async #whenMemory(signal: AbortSignal): Promise<void> {
    const { slots } = this.#claims;
    if (this.#broughtTasks && this.#memory !== 'fine') await pause(memoryPauseMs, signal);
    const isTooMuch = () => !signal.aborted && slots.used > 0 && this.#memory === 'critical';
    while (isTooMuch()) {
      slots.heldUp = true;
      await pause(memoryPauseMs, signal);
    }
    slots.heldUp = false;
  }

  get #memory(): MemoryState {
    return memoryState(this.#claims.pressure.read());
  }
}
