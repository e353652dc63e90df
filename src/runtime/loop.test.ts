import { describe, expect, it } from 'vitest';
import { Loop } from './loop.js';

describe('Loop', () => {
  it('ticks again at once when woken, also during a tick', async () => {
    let ticks = 0;
    const done = new Promise<void>((resolve) => {
      const loop = new Loop({
        onError: () => undefined,
        tick: () => {
          ticks += 1;
          if (ticks === 1) loop.wake();
          if (ticks === 2) {
            setImmediate(() => {
              loop.wake();
            });
          }
          if (ticks === 3) resolve(loop.stop());
          return Promise.resolve(3_600_000);
        },
      });
      loop.start();
    });
    await done;
    expect(ticks).toBe(3);
  });

  it('goes on after a tick that threw, and says so', async () => {
    const errors: unknown[] = [];
    let ticks = 0;
    await new Promise<void>((resolve) => {
      const loop = new Loop({
        errorDelayMs: 0,
        onError: (error) => errors.push(error),
        tick: () => {
          ticks += 1;
          if (ticks === 1) return Promise.reject(new Error('first'));
          resolve(loop.stop());
          return Promise.resolve(0);
        },
      });
      loop.start();
    });
    expect(ticks).toBe(2);
    expect(errors).toHaveLength(1);
  });

  it('stop resolves after the tick under way, may be called first and twice', async () => {
    const never = new Loop({ onError: () => undefined, tick: () => Promise.resolve(0) });
    await never.stop();
    never.start();
    await never.stop();

    let finished = false;
    const loop = new Loop({
      onError: () => undefined,
      tick: async () => {
        await new Promise(setImmediate);
        finished = true;
        return 3_600_000;
      },
    });
    loop.start();
    await Promise.all([loop.stop(), loop.stop()]);
    expect(finished).toBe(true);
  });
});
