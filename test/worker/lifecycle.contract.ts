import { describe, expect, it } from 'vitest';
import { defineTask } from '../../src/client/define-task.js';
import { SluiceError } from '../../src/domain/errors.js';
import type { TaskId, WorkerId } from '../../src/domain/ids.js';
import type { Heartbeat, WorkerDetail } from '../../src/protocol/workers-api.js';
import { silentLog } from '../../src/runtime/log.js';
import { TaskAbortedError } from '../../src/worker/errors.js';
import type { HandlerContext } from '../../src/worker/handler.js';
import { Worker } from '../../src/worker/worker.js';
import { Gate } from '../support/gate.js';
import { until } from '../support/until.js';
import { withCall, withTerms } from './transport.js';
import { registered, rejectedOnAbort, unique, type Workbench } from './workbench.js';

/** How it comes, goes, and stands a server that is away. */
export function describeLifecycle(name: string, bench: () => Workbench): void {
  describe(`a worker ${name}`, () => {
    it('R-WO8: stopping takes nothing new, lets what runs finish, and reports it', async () => {
      const started = new Gate();
      const go = new Gate();
      const slow = defineTask({
        type: unique('slow'),
        run: async () => {
          started.open();
          await go.passed;
          return 'finished';
        },
      });
      const worker = new Worker(bench().api, [slow], { concurrency: 1, log: silentLog });
      await worker.start();
      const running = await bench().sluice.submit(slow, {});
      await started.passed;
      const waiting = await bench().sluice.submit(slow, {});
      const stopping = worker.stop();
      go.open();
      await stopping;
      await expect(running.status()).resolves.toMatchObject({ result: 'finished' });
      await expect(waiting.status()).resolves.toMatchObject({ attempt: 0 });
      await expect(waiting.cancel()).resolves.toMatchObject({ wasExecuting: false });
    });

    it('R-WO8: what does not finish in time is told so, and goes back at no cost', async () => {
      const reasons: unknown[] = [];
      const started = new Gate();
      const deaf = defineTask({
        type: unique('deaf'),
        run: (_, { signal, attempt }) => {
          if (attempt > 1) return 'second try';
          signal.addEventListener('abort', () => reasons.push(signal.reason));
          started.open();
          return new Promise<never>(() => undefined);
        },
      });
      const polite = defineTask({
        type: unique('polite'),
        run: (_, { signal, attempt }) => (attempt > 1 ? 'second try' : rejectedOnAbort(signal)),
      });
      const handles = await bench().working(
        [deaf, polite],
        async (worker) => {
          const submitted = [
            await bench().sluice.submit(deaf, {}),
            await bench().sluice.submit(polite, {}),
          ];
          await started.passed;
          await until('both to run', () => worker.inFlight === 2);
          return submitted;
        },
        { drainTimeoutMs: 10 },
      );
      expect(reasons).toMatchObject([{ why: 'drain' }]);
      await bench().working([deaf, polite], async () => {
        const ended = await Promise.all(handles.map((handle) => handle.ended()));
        const backAtNoCost = {
          status: 'completed',
          result: 'second try',
          attempt: 2,
          retryCount: 0,
        };
        expect(ended).toMatchObject([backAtNoCost, backAtNoCost]);
      });
    });

    it('starts and stops as often as it is told to, and can be stopped first', async () => {
      const echo = defineTask({ type: unique('echo'), run: (input) => input });
      const worker = new Worker(bench().api, [echo], { log: silentLog });
      await Promise.all([worker.start(), worker.start()]);
      const id = registered(worker);
      await expect(bench().api.getWorker(id)).resolves.toMatchObject({ status: 'active' });
      await Promise.all([worker.stop(), worker.stop(), worker.stopped]);
      await until('the server to know', async () => {
        const view = await bench().api.getWorker(id).catch(isNotFound);
        return view === 'not found' || view.status === 'dead';
      });

      const unused = new Worker(bench().api, [echo], { log: silentLog });
      await unused.stop();
      await expect(unused.start()).rejects.toThrow('does not start again');
    });

    it('R-WO5: leaves when the server asks it to', async () => {
      const echo = defineTask({ type: unique('echo'), run: (input) => input });
      const api = withTerms(bench().api, { heartbeatIntervalMs: 50, leaseMs: 60_000 });
      const worker = new Worker(api, [echo], { log: silentLog });
      await worker.start();
      await bench().api.drainWorker(registered(worker));
      await worker.stopped;
    });

    it('R-WO9: what finished while the server was away is reported when it is back, not run again', async () => {
      let runs = 0;
      const started = new Gate();
      const go = new Gate();
      const finished = new Gate();
      const slow = defineTask({
        type: unique('slow'),
        run: async () => {
          runs += 1;
          started.open();
          await go.passed;
          finished.open();
          return 'kept';
        },
      });
      await bench().working([slow], async (worker) => {
        const handle = await bench().sluice.submit(slow, {});
        await started.passed;
        await bench().transport.cut();
        go.open();
        await finished.passed;
        await until('the slot to be free', () => worker.inFlight === 0);
        await bench().transport.restore();
        await expect(handle.result()).resolves.toBe('kept');
        await expect(handle.status()).resolves.toMatchObject({ attempt: 1 });
        expect(runs).toBe(1);
        // And it goes on as if nothing had happened.
        await expect((await bench().sluice.submit(slow, {})).result()).resolves.toBe('kept');
      });
    });

    it('registers again when the server does not know it, and its leases stay good', async () => {
      const started = new Gate();
      const go = new Gate();
      const slow = defineTask({
        type: unique('slow'),
        run: async () => {
          started.open();
          await go.passed;
          return 'under a new id';
        },
      });
      let unknown: WorkerId | null = null;
      const api = withCall(bench().api, 'report', (report) => async (workerId, reports) => {
        unknown ??= workerId;
        if (workerId === unknown) throw new SluiceError('worker_unknown', 'never heard of it');
        return report(workerId, reports);
      });
      await bench().working(
        [slow],
        async (worker) => {
          const before = worker.id;
          const handle = await bench().sluice.submit(slow, {});
          await started.passed;
          go.open();
          await expect(handle.result()).resolves.toBe('under a new id');
          await expect(handle.status()).resolves.toMatchObject({ attempt: 1 });
          expect(worker.id).not.toBe(before);
        },
        { api },
      );
    });

    it('R-WO9: a heartbeat brings leases only while it holds something of a former id', async () => {
      const started = new Gate();
      const go = new Gate();
      const slow = defineTask({
        type: unique('slow'),
        run: async (_, { signal }: HandlerContext) => {
          started.open();
          await Promise.race([go.passed, rejectedOnAbort(signal)]);
          return 'kept';
        },
      });
      let unknown: WorkerId | null = null;
      const beats: Heartbeat[] = [];
      const terms = { heartbeatIntervalMs: 50, leaseMs: 60_000 };
      const api = withCall(
        withTerms(bench().api, terms),
        'heartbeat',
        (heartbeat) => async (workerId, beat) => {
          if (workerId === unknown) throw new SluiceError('worker_unknown', 'never heard of it');
          const answer = await heartbeat(workerId, beat);
          beats.push(beat);
          // The server has not declared the former id dead, and would not let its tasks go.
          return beat.leases === undefined ? answer : { ...answer, lost: [] };
        },
      );
      const next = async () => {
        const before = beats.length;
        // The second one was composed after now.
        await until('two heartbeats', () => beats.length >= before + 2);
        return beats.at(-1);
      };
      await bench().working(
        [slow],
        async (worker) => {
          const handle = await bench().sluice.submit(slow, {});
          await started.passed;
          expect(await next()).not.toHaveProperty('leases');
          unknown = registered(worker);
          await until('its new id', () => worker.id !== unknown);
          const withLeases = await next();
          expect(withLeases?.currentTasks).toEqual([handle.id]);
          expect(withLeases?.leases).toHaveLength(1);
          go.open();
          await expect(handle.result()).resolves.toBe('kept');
          await expect(handle.status()).resolves.toMatchObject({ attempt: 1 });
          await until('an empty hand', () => beats.at(-1)?.currentTasks?.length === 0);
          expect(await next()).not.toHaveProperty('leases');
        },
        { api },
      );
    });

    it('R-WO12: lets go of its tasks before the leases lapse when no heartbeat arrives', async () => {
      const started = new Gate();
      const told = new Gate<unknown>();
      const endless = defineTask({
        type: unique('endless'),
        run: (_, { signal }: HandlerContext) => {
          signal.addEventListener('abort', () => told.open(signal.reason));
          started.open();
          return rejectedOnAbort(signal);
        },
      });
      const api = withTerms(bench().api, { heartbeatIntervalMs: 20, leaseMs: 2_000 });
      await bench().working(
        [endless],
        async (worker) => {
          const handle = await bench().sluice.submit(endless, {});
          await started.passed;
          await bench().transport.cut();
          await expect(told.passed).resolves.toEqual(new TaskAbortedError('lease_lost'));
          await until('the slot to be free', () => worker.inFlight === 0);
          await bench().transport.restore();
          await expect(handle.status()).resolves.toMatchObject({ error: null });
          await handle.cancel();
        },
        { api },
      );
    });

    it('does not start where it is refused', async () => {
      const echo = defineTask({ type: unique('echo'), run: (input) => input });
      const api = withCall(
        bench().api,
        'register',
        () => () => Promise.reject(new SluiceError('unauthorized', 'no such key')),
      );
      const worker = new Worker(api, [echo], { log: silentLog });
      await expect(worker.start()).rejects.toMatchObject({ code: 'unauthorized' });
      await worker.stop();
    });

    it('waits for a server that is not there yet', async () => {
      const echo = defineTask({ type: unique('echo'), run: ({ text }) => text ?? null });
      await bench().transport.cut();
      const worker = new Worker(bench().api, [echo], { log: silentLog });
      const starting = worker.start();
      await bench().transport.restore();
      await starting;
      await expect((await bench().sluice.submit(echo, { text: 'here' })).result()).resolves.toBe(
        'here',
      );
      await worker.stop();
    });

    it('R-WO12: a handler that ignores that its lease was lost keeps its slot, and nothing else', async () => {
      const started = new Gate();
      const go = new Gate();
      const deaf = defineTask({
        type: unique('deaf'),
        run: async (_, { attempt }) => {
          if (attempt > 1) return 'second';
          started.open();
          await go.passed;
          return 'late';
        },
      });
      const beats: (readonly TaskId[])[] = [];
      const reported: unknown[] = [];
      const terms = withTerms(bench().api, { heartbeatIntervalMs: 20, leaseMs: 2_000 });
      const noting = withCall(terms, 'heartbeat', (heartbeat) => (workerId, beat) => {
        beats.push(beat.currentTasks ?? []);
        return heartbeat(workerId, beat);
      });
      const api = withCall(noting, 'report', (report) => (workerId, reports) => {
        reported.push(...reports);
        return report(workerId, reports);
      });
      await bench().working(
        [deaf],
        async (worker) => {
          const handle = await bench().sluice.submit(deaf, {});
          await started.passed;
          const began = beats.length;
          const those = () => beats.slice(began);
          await until('a heartbeat with it', () =>
            those().some((beat) => beat.includes(handle.id)),
          );
          await bench().transport.cut();
          await until('a heartbeat without it', () => those().some((beat) => beat.length === 0));
          await bench().transport.restore();
          expect(worker.inFlight).toBe(1);
          go.open();
          await until('the slot to be free', () => worker.inFlight === 0);
          expect(reported).toEqual([]);
          await handle.cancel();
        },
        { api, concurrency: 1 },
      );
    });

    it('R-WO5: tells how it is in its heartbeats', async () => {
      const echo = defineTask({ type: unique('echo'), run: (input) => input });
      const api = withTerms(bench().api, { heartbeatIntervalMs: 50, leaseMs: 60_000 });
      await bench().working(
        [echo],
        async (worker) => {
          expect(worker.capacity).toBe(7);
          const view = await until('a heartbeat with a delay', async () => {
            const seen = await bench().api.getWorker(registered(worker));
            return seen.eventLoopDelayMs !== null && seen;
          });
          expect(view).toMatchObject({ capacity: 7, currentLoad: 0 });
          expect(view.memoryUsage).toBeGreaterThan(0);
        },
        { api, concurrency: 7 },
      );
    });

    it('R-OB11: tells its cores, its failures in a row, what it holds and that it was asked to leave', async () => {
      const go = new Gate();
      const type = unique('task');
      const task = defineTask({
        type,
        maxRetries: 0,
        run: async ({ fails }) => {
          if (fails === true) throw new Error('no');
          await go.passed;
        },
      });
      const api = withTerms(bench().api, { heartbeatIntervalMs: 50, leaseMs: 60_000 });
      const worker = new Worker(api, [task], { log: silentLog, concurrency: 3, version: '1.4.0' });
      await worker.start();
      const seen = (what: string, isThere: (view: WorkerDetail) => boolean) =>
        until(what, async () => {
          const view = await bench().api.getWorker(registered(worker));
          return isThere(view) && view;
        });
      for (let time = 0; time < 2; time += 1) {
        await (await bench().sluice.submit(task, { fails: true })).ended();
      }
      const failing = await seen('two failures', (view) => view.consecutiveFailures === 2);
      expect(failing).toMatchObject({ version: '1.4.0', availableCapacity: 3, currentTasks: [] });
      expect(failing.cpuUsage).toBeGreaterThanOrEqual(0);
      const handle = await bench().sluice.submit(task, { fails: false });
      const busy = await seen('a task', ({ currentLoad }) => currentLoad === 1);
      expect(busy).toMatchObject({ availableCapacity: 2, currentTasks: [handle.id] });
      expect(busy.drainRequestedAt).toBeNull();
      await bench().api.drainWorker(registered(worker));
      const leaving = await seen('the drain', ({ status }) => status === 'draining');
      expect(leaving.drainRequestedAt).toBeInstanceOf(Date);
      expect(leaving).toMatchObject({ availableCapacity: 0, currentTasks: [handle.id] });
      go.open();
      await worker.stopped;
      expect(await bench().api.getWorker(registered(worker))).toMatchObject({ status: 'dead' });
    });

    it('R-WO13: retires when nothing ran for too long', async () => {
      const echo = defineTask({ type: unique('echo'), run: (input) => input });
      const worker = new Worker(bench().api, [echo], { maxIdleMs: 100, log: silentLog });
      await worker.start();
      const id = registered(worker);
      await worker.stopped;
      const view = await bench().api.getWorker(id).catch(isNotFound);
      expect(view === 'not found' || view.status === 'dead').toBe(true);
    });

    it('R-WO13: drains when its lifetime is over', async () => {
      const started = new Gate();
      const go = new Gate();
      const slow = defineTask({
        type: unique('slow'),
        run: async () => {
          started.open();
          await go.passed;
          return 'finished';
        },
      });
      const api = withTerms(bench().api, { heartbeatIntervalMs: 20, leaseMs: 60_000 });
      const worker = new Worker(api, [slow], { maxLifetimeMs: 3_000, log: silentLog });
      const running = await bench().sluice.submit(slow, {});
      await worker.start();
      await started.passed;
      const id = registered(worker);
      await until('it to drain', async () => {
        const { status } = await bench().api.getWorker(id);
        return status === 'draining';
      });
      const waiting = await bench().sluice.submit(slow, {});
      go.open();
      await worker.stopped;
      await expect(running.status()).resolves.toMatchObject({ result: 'finished' });
      await expect(waiting.status()).resolves.toMatchObject({ attempt: 0 });
      await waiting.cancel();
    });

    it.each([0, -1, NaN])('R-WO13: %d is no time to retire after', (ms) => {
      const echo = defineTask({ type: unique('echo'), run: (input) => input });
      expect(() => new Worker(bench().api, [echo], { maxIdleMs: ms })).toThrow(RangeError);
      expect(() => new Worker(bench().api, [echo], { maxLifetimeMs: ms })).toThrow(RangeError);
    });
  });
}

function isNotFound(error: unknown): 'not found' {
  if (error instanceof SluiceError && error.code === 'worker_not_found') return 'not found';
  throw error;
}
