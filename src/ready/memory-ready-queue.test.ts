import { describe, it } from 'vitest';
import { ManualClock } from '../runtime/clock.js';
import { MemoryReadyQueue } from './memory-ready-queue.js';
import { agreeOnRandomHistories } from './random-histories.contract.js';
import { describeReadyQueueContract, type ReadyQueueUnderTest } from './ready-queue.contract.js';

async function make(): Promise<ReadyQueueUnderTest> {
  const clock = new ManualClock();
  return {
    queue: new MemoryReadyQueue({ clock }),
    nowMs: () => clock.nowMs(),
    advance: (ms) => clock.advance(ms),
    driftMs: 0,
  };
}

describeReadyQueueContract('MemoryReadyQueue', make);

describe('MemoryReadyQueue', () => {
  it('R-CH10: answers random histories as a queue that sorts everything each time', async () => {
    await agreeOnRandomHistories(make, 2000);
  });
});
