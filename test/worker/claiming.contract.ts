import { describe, expect, it } from 'vitest';
import { defineTask } from '../../src/client/define-task.js';
import type { SluiceApi } from '../../src/protocol/api.js';
import { RateLimitedError, UnavailableError } from '../../src/worker/errors.js';
import type { Worker } from '../../src/worker/worker.js';
import { Gate } from '../support/gate.js';
import { until } from '../support/until.js';
import { withCall, withTerms } from './transport.js';
import { registered, rejectedOnAbort, unique, type Workbench } from './workbench.js';

/** The polls for tasks that are under way. */
class PollWatch {
  readonly asking = new Set<{ readonly asked: number; readonly waitMs: number }>();
  sent = 0;
  most = 0;
  mostWaiting = 0;
  mostPromised = 0;
  worker: Worker | null = null;

  watch(api: SluiceApi): SluiceApi {
    return withCall(api, 'poll', (poll) => async (workerId, request, signal) => {
      const { availableCapacity: asked, waitMs = 0 } = request;
      const one = { asked, waitMs };
      if (asked > 0) {
        this.asking.add(one);
        this.sent += 1;
        this.#note();
      }
      try {
        return await poll(workerId, request, signal);
      } finally {
        this.asking.delete(one);
      }
    });
  }

  #note(): void {
    const asked = [...this.asking].reduce((sum, one) => sum + one.asked, 0);
    this.most = Math.max(this.most, this.asking.size);
    this.mostWaiting = Math.max(this.mostWaiting, this.waiting);
    this.mostPromised = Math.max(this.mostPromised, asked + (this.worker?.inFlight ?? 0));
  }

  get waiting(): number {
    return [...this.asking].filter(({ waitMs }) => waitMs > 0).length;
  }
}

type Resizable = ArrayBuffer & { resize(bytes: number): void };

/** Memory that comes and goes at once: a buffer would wait for the garbage collector. */
class Ballast {
  readonly #buffer: Resizable;

  constructor(maxByteLength: number) {
    const Buffers = ArrayBuffer as unknown as new (bytes: number, options: object) => Resizable;
    this.#buffer = new Buffers(0, { maxByteLength });
  }

  /** So that the process takes as much, whatever the rest of it does. */
  fillTo(bytes: number): void {
    const others = process.memoryUsage.rss() - this.#buffer.byteLength;
    this.#buffer.resize(Math.max(0, Math.floor(bytes - others)));
    new Uint8Array(this.#buffer).fill(1);
  }

  drop(): void {
    this.#buffer.resize(0);
  }
}

/** How many tasks it takes, and when. */
export function describeClaiming(name: string, bench: () => Workbench): void {
  describe(`a worker ${name}`, () => {
    it('R-WO1: never runs more at once than it has slots, and all of them', async () => {
      const size = 5;
      let running = 0;
      let most = 0;
      const full = new Gate();
      const go = new Gate();
      const count = defineTask({
        type: unique('count'),
        run: async () => {
          running += 1;
          most = Math.max(most, running);
          if (running === size) full.open();
          await go.passed;
          running -= 1;
        },
      });
      await bench().working(
        [count],
        async (worker) => {
          const handles = await bench().submitAll(count, 30);
          await full.passed;
          expect(worker.inFlight).toBe(size);
          go.open();
          await Promise.all(handles.map((handle) => handle.result()));
          expect(most).toBe(size);
        },
        { concurrency: size },
      );
    });

    it('R-CH9: a slow task holds up no neighbour, also one that came later', async () => {
      const go = new Gate();
      const slow = defineTask({ type: unique('slow'), run: () => go.passed });
      const quick = defineTask({ type: unique('quick'), run: () => 'done' });
      await bench().working(
        [slow, quick],
        async () => {
          const first = await bench().sluice.submit(slow, {});
          for (let i = 0; i < 3; i += 1) {
            await expect((await bench().sluice.submit(quick, {})).result()).resolves.toBe('done');
          }
          go.open();
          await expect(first.result()).resolves.toBeNull();
        },
        { concurrency: 2 },
      );
    });

    it('R-WO3: a poll more goes out only when the last one was full, and does not wait', async () => {
      const polls = new PollWatch();
      const ends = new Map<number, Gate>();
      const slow = defineTask({
        type: unique('slow'),
        run: async () => {
          const end = new Gate();
          ends.set(ends.size, end);
          await end.passed;
        },
      });
      await bench().submitAll(slow, 4);
      await bench().working(
        [slow],
        async (worker) => {
          polls.worker = worker;
          await until('all to run', () => ends.size === 4);
          const end = async (which: number) => {
            ends.get(which)?.open();
            await until('its slot to be free', () => worker.inFlight === 3 - which);
          };
          await end(0);
          await until('a poll that waits', () => polls.waiting === 1);
          expect(polls.sent).toBe(2);
          // All four came at once: there may be a fifth for the slot that falls free meanwhile.
          await end(1);
          await until('a further poll, in vain', () => polls.sent === 3 && polls.asking.size === 1);
          await end(2);
          await end(3);
          expect(polls.sent).toBe(3);
          expect(polls).toMatchObject({ most: 2, mostWaiting: 1, mostPromised: 4 });
        },
        { api: polls.watch(bench().api), concurrency: 4 },
      );
    });

    it('R-WO3: at high rates polls bring no more than can start; idle, one waits', async () => {
      const polls = new PollWatch();
      const capacity = 150;
      let begun = 0;
      const quick = defineTask({ type: unique('quick'), run: () => (begun += 1) });
      await bench().submitAll(quick, 2 * capacity);
      await bench().working(
        [quick],
        async (worker) => {
          polls.worker = worker;
          await until('all to end', () => begun === 2 * capacity && worker.inFlight === 0);
          expect(polls.most).toBeLessThanOrEqual(4);
          expect(polls.mostWaiting).toBe(1);
          expect(polls.mostPromised).toBeLessThanOrEqual(capacity);
          await until('one poll alone', () => polls.asking.size === 1 && polls.waiting === 1);
        },
        { api: polls.watch(bench().api), concurrency: capacity },
      );
    });

    it.each([1, 2, 5])('R-WO3: a worker of %d slots keeps them busy', async (concurrency) => {
      const polls = new PollWatch();
      const quick = defineTask({ type: unique('quick'), run: () => 'done' });
      await bench().working(
        [quick],
        async (worker) => {
          polls.worker = worker;
          const handles = await bench().submitAll(quick, 20);
          await Promise.all(handles.map((handle) => handle.result()));
          expect(polls.mostPromised).toBeLessThanOrEqual(concurrency);
          expect(polls.mostWaiting).toBe(1);
        },
        { api: polls.watch(bench().api), concurrency },
      );
    });

    it('the next poll does not wait for the report, nor the report for the poll', async () => {
      const quick = defineTask({ type: unique('quick'), run: () => 'done' });
      const nextPoll = new Gate();
      let polled = 0;
      const polling = withCall(bench().api, 'poll', (poll) => (workerId, request, signal) => {
        if (request.availableCapacity > 0) polled += 1;
        if (polled === 2) nextPoll.open();
        return poll(workerId, request, signal);
      });
      const api = withCall(polling, 'report', (report) => async (workerId, reports) => {
        await nextPoll.passed;
        return report(workerId, reports);
      });
      await bench().working(
        [quick],
        async () => {
          const handle = await bench().sluice.submit(quick, {});
          await expect(handle.result()).resolves.toBe('done');
        },
        { api, concurrency: 1 },
      );
    });

    it.each([
      ['RATE_LIMITED', () => new RateLimitedError(0)],
      ['UNAVAILABLE', () => new UnavailableError('away', { seconds: 0 })],
    ])(
      'R-RE9: after %s nothing is asked for in its place before the report is answered',
      async (_, pushBack) => {
        const polls = new PollWatch();
        const go = new Gate();
        const heard = new Gate();
        let begun = 0;
        let reported = 0;
        const call = defineTask({
          type: unique('call'),
          queue: unique('pushed-back'),
          run: async (__, { attempt }) => {
            if (attempt > 1) return;
            begun += 1;
            await go.passed;
            throw pushBack();
          },
        });
        const api = withCall(
          polls.watch(bench().api),
          'report',
          (report) => async (id, reports) => {
            reported += reports.length;
            await heard.passed;
            return report(id, reports);
          },
        );
        const handles = await bench().submitAll(call, 3);
        await bench().working(
          [call],
          async (worker) => {
            await until('all to run', () => begun === 3);
            const { sent } = polls;
            go.open();
            await until('all to be reported', () => reported === 3);
            // By now a poll that waits for nothing would be on its way.
            await bench().api.getWorker(registered(worker));
            expect([worker.inFlight, polls.sent]).toEqual([0, sent]);
            heard.open();
            await Promise.all(handles.map((handle) => handle.result()));
          },
          { api, concurrency: 3 },
        );
      },
    );

    it('R-RE9: a push-back that can not be reported yet costs the worker no slot for good', async () => {
      const started = new Gate();
      const cut = new Gate();
      const ended = new Gate();
      const call = defineTask({
        type: unique('call'),
        queue: unique('pushed-back'),
        run: async (_, { attempt }) => {
          if (attempt > 1) return 'done';
          started.open();
          await cut.passed;
          throw new RateLimitedError(0);
        },
      });
      await bench().working(
        [call],
        async (worker) => {
          const handle = await bench().sluice.submit(call, {});
          await started.passed;
          await bench().transport.cut();
          cut.open();
          await ended.passed;
          expect(worker.inFlight).toBe(0);
          await bench().transport.restore();
          await expect(handle.result()).resolves.toBe('done');
        },
        {
          concurrency: 1,
          observer: { claimed: () => undefined, ended: () => ended.open() },
        },
      );
    });

    it('R-CH6: a poll that waits for a place in its queue is woken by the report that frees one', async () => {
      const queue = unique('narrow');
      await bench().api.putQueue(queue, { maxConcurrency: 1 });
      const quick = defineTask({ type: unique('quick'), queue, run: () => 'done' });
      await bench().working(
        [quick],
        async () => {
          const handles = await bench().submitAll(quick, 10);
          await Promise.all(handles.map((handle) => handle.result()));
        },
        { concurrency: 2 },
      );
    });

    it('results that end together are reported together', async () => {
      const go = new Gate();
      const slow = defineTask({ type: unique('slow'), run: () => go.passed });
      let calls = 0;
      let reported = 0;
      const api = withCall(bench().api, 'report', (report) => async (workerId, reports) => {
        calls += 1;
        const answers = await report(workerId, reports);
        reported += answers.length;
        return answers;
      });
      await bench().working(
        [slow],
        async (worker) => {
          await bench().submitAll(slow, 100);
          await until('all to run', () => worker.inFlight === 100);
          go.open();
          await until('all to be reported', () => reported === 100);
          expect(calls).toBeLessThan(20);
        },
        { api },
      );
    });

    it('R-WO3: claims fall while memory is high, and recover when it is free again', async () => {
      const limit = Math.ceil(process.memoryUsage.rss() / 0.6);
      const ballast = new Ballast(limit);
      const sizes: number[] = [];
      const quick = defineTask({ type: unique('quick'), run: () => 'done' });
      const observer = { claimed: (asked: number) => sizes.push(asked), ended: () => undefined };
      await bench().working(
        [quick],
        async () => {
          const claimed = async (isSo: (asked: number) => boolean) => {
            await (await bench().sluice.submit(quick, {})).result();
            return isSo(sizes.at(-1) ?? 0);
          };
          await until('a full claim', () => claimed((asked) => asked === 50));
          await until('a smaller claim', () => {
            ballast.fillTo(limit * 0.88);
            return claimed((asked) => asked <= 25);
          });
          ballast.drop();
          await until('a full claim again', () => claimed((asked) => asked === 50));
        },
        { memoryLimitBytes: limit, observer },
      );
    });

    it('R-WO3: out of memory it does one task at a time, and still hears of a cancel', async () => {
      let running = 0;
      let most = 0;
      const quick = defineTask({
        type: unique('quick'),
        run: async () => {
          running += 1;
          most = Math.max(most, running);
          await new Promise((resolve) => setTimeout(resolve, 5));
          running -= 1;
        },
      });
      const endless = defineTask({
        type: unique('endless'),
        run: (_, { signal }) => rejectedOnAbort(signal),
      });
      await bench().working(
        [quick, endless],
        async (worker) => {
          const handles = await bench().submitAll(quick, 5);
          await Promise.all(handles.map((handle) => handle.result()));
          expect(most).toBe(1);
          const handle = await bench().sluice.submit(endless, {});
          await until('it to run', () => worker.inFlight === 1);
          await handle.cancel();
          await until('the slot to be free', () => worker.inFlight === 0);
        },
        {
          api: withTerms(bench().api, { heartbeatIntervalMs: 600_000, leaseMs: 1e9 }),
          memoryLimitBytes: process.memoryUsage.rss() / 10,
        },
      );
    });

    it('R-WO3: claims fall while its tasks take longer than they should', async () => {
      const sizes: number[] = [];
      const slow = defineTask({
        type: unique('slow'),
        run: () => new Promise((resolve) => setTimeout(resolve, 5, 'done')),
      });
      await bench().working(
        [slow],
        async () => {
          await until('a smaller claim', async () => {
            await (await bench().sluice.submit(slow, {})).result();
            return sizes.at(-1) === 35;
          });
        },
        {
          latencyThresholdMs: 1,
          observer: { claimed: (asked) => sizes.push(asked), ended: () => undefined },
        },
      );
    });

    it('R-OB13: a claim asks for as many tasks as claimBatch says', async () => {
      const sizes: number[] = [];
      const quick = defineTask({ type: unique('quick'), run: () => 'done' });
      await bench().working(
        [quick],
        async () => {
          await (await bench().sluice.submit(quick, {})).result();
        },
        {
          ...{ concurrency: 20, claimBatch: 7 },
          observer: { claimed: (asked) => sizes.push(asked), ended: () => undefined },
        },
      );
      expect(sizes[0]).toBe(7);
      for (const claimBatch of [0, 1_001, 2.5]) {
        const working = bench().working([quick], () => Promise.resolve(), { claimBatch });
        await expect(working).rejects.toThrow(/claimBatch must be/);
      }
    });

    it('tells an observer of every claim and the end of every attempt', async () => {
      const ends: [string, string][] = [];
      let received = 0;
      const started = new Gate();
      const fine = defineTask({ type: unique('fine'), run: () => 'done' });
      const bad = defineTask({
        type: unique('bad'),
        maxRetries: 0,
        run: () => {
          throw new Error('no');
        },
      });
      const endless = defineTask({
        type: unique('endless'),
        run: (_, { signal }) => {
          started.open();
          return rejectedOnAbort(signal);
        },
      });
      await bench().working(
        [fine, bad, endless],
        async () => {
          await (await bench().sluice.submit(fine, {})).ended();
          await (await bench().sluice.submit(bad, {})).ended();
          const handle = await bench().sluice.submit(endless, {});
          await started.passed;
          await handle.cancel();
          await until('the third end', () => ends.length === 3);
        },
        {
          observer: {
            claimed: (asked, count) => {
              expect(count).toBeLessThanOrEqual(asked);
              received += count;
            },
            ended: (taskType, outcome, seconds) => {
              expect(seconds).toBeGreaterThanOrEqual(0);
              ends.push([taskType, outcome]);
              throw new Error('who looks on disturbs nobody');
            },
          },
        },
      );
      expect(received).toBe(3);
      expect(ends).toEqual([
        [fine.type, 'completed'],
        [bad.type, 'failed'],
        [endless.type, 'abandoned'],
      ]);
    });
  });
}
