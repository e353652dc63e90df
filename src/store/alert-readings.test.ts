import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { seedTask } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import { waitingRules } from '../domain/alerts/waiting-rules.js';
import { emptySnapshot } from '../domain/alerts/snapshot.js';
import { counterLength, counterPositions } from '../domain/counters.js';
import { readDeadLetters, readHistory } from './alert-readings.js';
import { classifyDeadLetters, noteUncounted } from './classify-dead-letters.js';
import { addCounts, allQueuesName, sumUpCounts, type CountedSlot } from './counters.js';
import type { Database } from './database.js';

const minuteMs = 60_000;
const slotMs = 5_000;
const beganMs = Date.UTC(2026, 2, 1, 12);

describeOnEveryDatabase('what the alert rules read of the counters', (db) => {
  it('R-OB3: a steady flow has the same rate in the last 5 minutes as in the last hour, in every phase of the minute', async () => {
    const flow = new Flow(db());
    await flow.run(70 * minuteMs, () => 10);
    const ratios: number[] = [];
    for (let phase = 0; phase < 24; phase += 1) {
      ratios.push(await flow.ratio());
      await flow.run(slotMs, () => 10);
    }
    expect(Math.min(...ratios)).toBeGreaterThan(0.98);
    expect(Math.max(...ratios)).toBeLessThan(1.02);
  });

  it('R-OB3: a flow that sank to 55 % keeps completion_rate_drop well, in every phase of the minute', async () => {
    const flow = new Flow(db());
    await flow.run(65 * minuteMs, () => 20);
    await flow.run(6 * minuteMs, () => 11);
    const threshold = waitingRules.completion_rate_drop.threshold;
    const areBad: boolean[] = [];
    for (let phase = 0; phase < 24; phase += 1) {
      areBad.push((await flow.ratio()) < threshold);
      await flow.run(slotMs, () => 11);
    }
    expect(areBad).toEqual(areBad.map(() => false));
  });

  it('R-OB3: a burst counts whole for as long as the window is, and not after it', async () => {
    const flow = new Flow(db());
    await flow.run(slotMs, () => 7);
    const counts: number[] = [];
    for (let slots = 0; slots < 14; slots += 1) {
      counts.push(await flow.completed(minuteMs));
      await flow.run(slotMs, () => 0);
    }
    expect(counts).toEqual([...Array.from({ length: 12 }, () => 7), 0, 0]);
  });
});

describeOnEveryDatabase('what the alert rules read of dead letters', (db) => {
  it('R-OB3: a long code is cut at a whole character, so that its alert is found again as it was stored', async () => {
    const code = `${'a'.repeat(199)}😀`;
    const error = { code, message: 'it broke', retriable: true };
    await seedTask(db(), { status: 'dead_letter', error });
    await noteUncounted(db(), null, 10);
    await classifyDeadLetters(db(), 10);
    const { deadLetterReasons } = await readDeadLetters(db());
    expect(deadLetterReasons).toEqual([{ label: 'a'.repeat(199), value: 1 }]);
  });
});

/** What servers count, written and summed up as the upkeep does, by the clock of the test. */
class Flow {
  readonly #db: Database;
  readonly #process = randomUUID();
  #sequence = 0;
  /** The begin of a slot: the slots before it are written. */
  #nowMs = beganMs;

  constructor(db: Database) {
    this.#db = db;
  }

  async run(ms: number, completedInSlot: () => number): Promise<void> {
    const slots: CountedSlot[] = [];
    for (const endMs = this.#nowMs + ms; this.#nowMs < endMs; this.#nowMs += slotMs) {
      const counts = new Float64Array(counterLength);
      counts[counterPositions.completed] = completedInSlot();
      slots.push({ queue: allQueuesName, atMs: this.#nowMs, counts });
    }
    this.#sequence += 1;
    const process = { id: this.#process, sequence: this.#sequence };
    const now = new Date(this.#nowMs);
    await addCounts(this.#db, process, slots, now);
    const step = { from: 5, to: 60, olderThanMs: 3 * minuteMs, limit: 10_000 } as const;
    await sumUpCounts(this.#db, step, now);
  }

  /** As read two seconds later. */
  async completed(ms: number): Promise<number> {
    return (await readHistory(this.#db, this.#nowMs + 2_000)).since(ms)('completed');
  }

  async ratio(): Promise<number> {
    const { value } = waitingRules.completion_rate_drop;
    const ratio = value({
      ...emptySnapshot,
      waiting: 1,
      completedLast5Minutes: await this.completed(5 * minuteMs),
      completedLastHour: await this.completed(60 * minuteMs),
    });
    return ratio ?? Number.NaN;
  }
}
