import { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { defineTask } from '../../src/client/define-task.js';
import type { Sluice } from '../../src/client/sluice.js';
import { instrument, type InstrumentOptions } from '../../src/otel/index.js';
import { silentLog } from '../../src/runtime/log.js';
import { NonRetriableError } from '../../src/worker/errors.js';
import type { TaskHandler } from '../../src/worker/handler.js';
import { Gate } from '../support/gate.js';
import { rejectedOnAbort, unique } from '../worker/workbench.js';
import { Recording } from './recording.js';

/** A new Sluice of the same server, not instrumented. */
export type OpenSluice = () => Sluice;

export function describeTracing(name: string, open: () => Promise<OpenSluice>): void {
  describe(`spans ${name}`, () => {
    const recording = new Recording();
    let another: OpenSluice;

    beforeAll(async () => {
      another = await open();
      recording.start();
    });
    beforeEach(() => recording.clear());
    afterAll(() => recording.stop());

    /** An instrumented Sluice with a worker, for the length of a test. */
    async function working<Answer>(
      handlers: readonly TaskHandler[],
      test: (sluice: Sluice) => Promise<Answer>,
      options: InstrumentOptions = {},
    ): Promise<Answer> {
      const sluice = instrument(another(), options);
      await sluice.worker(handlers, { log: silentLog, drainTimeoutMs: 100 }).start();
      try {
        return await test(sluice);
      } finally {
        await sluice.close();
      }
    }

    /** Its handler has a span of its own, after it waited for something. */
    function summarize(queue: string) {
      return defineTask({
        type: queue,
        queue,
        run: async () => {
          await delay(1);
          recording.tracer.startSpan('call the model').end();
        },
      });
    }

    /** Submits within a span of the program. */
    function inProgram<Answer>(act: () => Promise<Answer>): Promise<Answer> {
      return recording.tracer.startActiveSpan('a request', async (span) => {
        try {
          return await act();
        } finally {
          span.end();
        }
      });
    }

    it('R-OB2: a trace goes from the program through the task to the span of its handler', async () => {
      const queue = unique('parent');
      const task = summarize(queue);
      const handle = await working(
        [task],
        async (sluice) => {
          const submitted = await inProgram(() => sluice.submit(task, {}));
          await submitted.result();
          await recording.ended(`settle ${queue}`);
          return submitted;
        },
        { structure: 'parent' },
      );
      const [request, send, wait, run, model, settle] = await Promise.all(
        ['a request', `send ${queue}`, `wait ${queue}`, `process ${queue}`]
          .concat('call the model', `settle ${queue}`)
          .map((each) => recording.ended(each)),
      );
      const spans = [request, send, wait, run, model, settle];
      expect(new Set(spans.map((span) => span?.traceId)).size).toBe(1);
      expect(spans.map((span) => span?.parentId)).toEqual(
        [undefined, request, send, send, run, run].map((parent) => parent?.spanId),
      );
      expect(spans.slice(1).map((span) => span?.kind)).toEqual([
        ...[SpanKind.PRODUCER, SpanKind.INTERNAL, SpanKind.CONSUMER, SpanKind.INTERNAL],
        SpanKind.CLIENT,
      ]);
      expect(send?.attributes).toMatchObject({
        'messaging.system': 'sluice',
        'messaging.operation.name': 'send',
        'messaging.operation.type': 'send',
        'messaging.destination.name': queue,
        'messaging.message.id': handle.id,
        'sluice.task.trace_id': request?.traceId,
      });
      expect(run?.attributes).toMatchObject({
        'messaging.operation.type': 'process',
        'messaging.destination.name': queue,
        'messaging.message.id': handle.id,
        'sluice.task.type': queue,
        'sluice.task.attempt': 1,
        'sluice.attempt.outcome': 'completed',
      });
      expect(settle?.attributes).toMatchObject({ 'sluice.task.status': 'completed' });
    });

    it('R-OB2: by default an attempt is a trace of its own, linked to its submit', async () => {
      const queue = unique('link');
      const task = summarize(queue);
      await working([task], async (sluice) => {
        await (await inProgram(() => sluice.submit(task, {}))).result();
      });
      const send = await recording.ended(`send ${queue}`);
      const run = await recording.ended(`process ${queue}`);
      const model = await recording.ended('call the model');
      expect(run).toMatchObject({ parentId: undefined, links: [send.spanId] });
      expect(run.traceId).not.toBe(send.traceId);
      expect(model).toMatchObject({ traceId: run.traceId, parentId: run.spanId });
      expect(await recording.ended(`wait ${queue}`)).toMatchObject({
        traceId: send.traceId,
        parentId: send.spanId,
      });
    });

    it('R-OB2: each attempt has a span, and a failed one says why', async () => {
      const queue = unique('retry');
      const task = defineTask({
        type: queue,
        queue,
        maxRetries: 1,
        retry: { delaySeconds: [0] },
        run: (_, { attempt }) => {
          if (attempt === 1) throw Object.assign(new Error('no answer'), { code: 'FLAKY' });
          throw new NonRetriableError('never again', { code: 'BAD_KEY' });
        },
      });
      await working([task], async (sluice) => {
        await (await sluice.submit(task, {})).ended();
        await recording.allEnded(`settle ${queue}`, 2);
      });
      const attempts = recording.named(`process ${queue}`);
      expect(attempts).toMatchObject([
        { status: SpanStatusCode.ERROR, attributes: { 'error.type': 'FLAKY' } },
        { status: SpanStatusCode.ERROR, attributes: { 'error.type': 'BAD_KEY' } },
      ]);
      expect(attempts.map(({ attributes }) => attributes['sluice.task.attempt'])).toEqual([1, 2]);
      expect(recording.named(`settle ${queue}`)).toMatchObject([
        { attributes: { 'sluice.task.next': 'retry' } },
        { attributes: { 'sluice.task.next': 'dead_letter' } },
      ]);
      expect(recording.named(`wait ${queue}`)).toHaveLength(2);
    });

    it('R-OB2: a cancelled attempt is no error, and settles nothing', async () => {
      const queue = unique('cancelled');
      const started = new Gate();
      const task = defineTask({
        type: queue,
        queue,
        run: (_, { signal }) => {
          started.open();
          return rejectedOnAbort(signal);
        },
      });
      await working([task], async (sluice) => {
        const handle = await sluice.submit(task, {});
        await started.passed;
        await handle.cancel();
        await recording.ended(`process ${queue}`);
      });
      const run = await recording.ended(`process ${queue}`);
      expect(run).toMatchObject({
        status: SpanStatusCode.UNSET,
        attributes: { 'sluice.attempt.outcome': 'cancelled' },
      });
      expect(recording.named(`settle ${queue}`)).toEqual([]);
    });

    it('R-OB2: tasks that are submitted together share a span', async () => {
      const queue = unique('batch');
      const task = summarize(queue);
      await working([task], async (sluice) => {
        const many = await sluice.submitMany(task, [{ input: {} }, { input: {} }, { input: {} }]);
        for (const one of many) if (one.kind === 'accepted') await one.handle.result();
      });
      const send = await recording.ended(`send ${queue}`);
      expect(send.attributes).toMatchObject({ 'messaging.batch.message_count': 3 });
      const runs = await recording.allEnded(`process ${queue}`, 3);
      expect(runs.map(({ links }) => links)).toEqual(Array(3).fill([send.spanId]));
    });

    it('R-OB2: submits of several traces that are sent together keep their own', async () => {
      const queue = unique('gathered');
      const task = summarize(queue);
      await working(
        [task],
        async (sluice) => {
          const submits = [1, 2, 3].map(() => inProgram(() => sluice.submit(task, {})));
          for (const handle of await Promise.all(submits)) await handle.result();
        },
        { structure: 'parent' },
      );
      const runs = await recording.allEnded(`process ${queue}`, 3);
      const programs = recording.named('a request').map(({ traceId }) => traceId);
      expect(new Set(programs).size).toBe(3);
      expect(runs.map(({ traceId }) => traceId).toSorted()).toEqual(programs.toSorted());
    });

    it('R-OB2: the span of a refused submit says so', async () => {
      const task = summarize(unique('refused'));
      const sluice = instrument(another());
      const refused = sluice.submit(task, {}, { timeoutSeconds: -1 });
      await expect(refused).rejects.toMatchObject({ code: 'invalid_request' });
      expect(await recording.ended(`send ${task.type}`)).toMatchObject({
        status: SpanStatusCode.ERROR,
        attributes: { 'error.type': 'invalid_request' },
      });
    });

    it('R-OB2: a submit keeps the traceparent that it names', async () => {
      const queue = unique('given');
      const task = summarize(queue);
      const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
      await working(
        [task],
        async (sluice) => {
          const handle = await sluice.submit(task, {}, { traceparent });
          await handle.result();
          expect((await handle.status()).traceId).toBe('0af7651916cd43dd8448eb211c80319c');
        },
        { structure: 'parent' },
      );
      expect(await recording.ended(`process ${queue}`)).toMatchObject({
        traceId: '0af7651916cd43dd8448eb211c80319c',
        parentId: 'b7ad6b7169203331',
      });
    });

    it('R-OB2: a worker that was started within a span has its attempts outside of it', async () => {
      const queue = unique('started');
      const task = summarize(queue);
      const sluice = another();
      const handle = await sluice.submit(task, {});
      await inProgram(() => working([task], () => handle.result()));
      const run = await recording.ended(`process ${queue}`);
      expect(run).toMatchObject({ parentId: undefined, links: [] });
      const [request] = recording.named('a request');
      expect(run.traceId).not.toBe(request?.traceId);
      await sluice.close();
    });

    it('R-OB2: without instrument there are no spans, and without a trace none is carried', async () => {
      const queue = unique('plain');
      const seen = new Gate<string | null>();
      const task = defineTask({
        type: queue,
        queue,
        run: (_, { task: running }) => seen.open(running.traceparent),
      });
      const sluice = another();
      await sluice.worker([task], { log: silentLog }).start();
      await (await inProgram(() => sluice.submit(task, {}))).result();
      expect(await seen.passed).toBeNull();
      expect(recording.spans.map((span) => span.name)).toEqual(['a request']);
      await sluice.close();
    });

    it('R-OB2: without an SDK it carries the trace on that is active', async () => {
      const queue = unique('no-sdk');
      const seen = new Gate<string | null>();
      const task = defineTask({
        type: queue,
        queue,
        run: (_, { task: running }) => seen.open(running.traceparent),
      });
      const active = { traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceFlags: 1 };
      trace.disable();
      const sluice = instrument(another());
      await sluice.worker([task], { log: silentLog }).start();
      const handle = await context.with(trace.setSpanContext(ROOT_CONTEXT, active), () =>
        sluice.submit(task, {}),
      );
      await handle.result();
      expect(await seen.passed).toBe(`00-${active.traceId}-${active.spanId}-01`);
      expect(recording.spans).toEqual([]);
      await sluice.close();
      trace.setGlobalTracerProvider(recording.provider);
    });

    it('R-OB2: a tracing that throws disturbs no task', async () => {
      const queue = unique('broken');
      const sluice = another();
      const fail = () => {
        throw new Error('broken');
      };
      const broken = { run: <Answer>(call: () => Answer) => call(), ended: fail, settling: fail };
      for (const begin of [fail, () => broken]) {
        const task = defineTask({ type: unique('broken'), queue, run: () => 'done' });
        await sluice.worker([task], { log: silentLog, tracing: { begin } }).start();
        await expect((await sluice.submit(task, {})).result()).resolves.toBe('done');
      }
      await sluice.close();
    });

    describe('tokens', () => {
      /** What a library writes that calls a model. */
      function callModel(attributes: Record<string, string | number>, inside?: () => void): void {
        recording.tracer.startActiveSpan('chat', { attributes }, (span) => {
          inside?.();
          span.end();
        });
      }
      const usage = (input: number, output: number) => ({
        'gen_ai.provider.name': 'openai',
        'gen_ai.usage.input_tokens': input,
        'gen_ai.usage.output_tokens': output,
      });

      async function tokensOf(run: TaskHandler['run']) {
        const queue = unique('tokens');
        const task = defineTask({ type: queue, queue, cost: { tokens: 1_000 }, run });
        return working([task], async (sluice) => {
          await sluice
            .queue(queue)
            .set({ limits: [{ unit: 'tokens', rate: 100_000, perSeconds: 60 }] });
          const handle = await sluice.submit(task, {});
          const { usage: used } = await handle.ended();
          const { live } = await sluice.queue(queue).get();
          return { usage: used, limit: live.usage[0]?.used };
        });
      }

      it('R-OB2: of the spans of a handler settle the limit of its queue', async () => {
        const told = await tokensOf(async () => {
          await delay(1);
          callModel(usage(1_500, 300));
          callModel(usage(30, 4));
        });
        expect(told).toEqual({ usage: { tokens: 1_834 }, limit: 1_834 });
      });

      it('R-OB2: that a span sums up of those inside it count once', async () => {
        const told = await tokensOf(() => {
          callModel(usage(40, 4), () => {
            callModel(usage(10, 1));
            callModel(usage(30, 3));
          });
        });
        expect(told.usage).toEqual({ tokens: 44 });
      });

      it('R-OB2: that the handler told itself count alone', async () => {
        const told = await tokensOf((_, context) => {
          callModel(usage(10, 1));
          context.usage({ tokens: 7 });
        });
        expect(told).toEqual({ usage: { tokens: 7 }, limit: 7 });
      });

      it('R-OB2: of a handler whose spans say nothing leave what was expected', async () => {
        const told = await tokensOf(() => recording.tracer.startSpan('a query').end());
        expect(told).toEqual({ usage: null, limit: 1_000 });
      });
    });
  });
}
