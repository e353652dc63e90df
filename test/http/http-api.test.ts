import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { connecting } from '../../src/client/connecting.js';
import { defineTask } from '../../src/client/define-task.js';
import { openFetchSender } from '../../src/client/fetch-sender.js';
import type { HttpApiOptions } from '../../src/client/http-api.js';
import { HttpWorkerApi } from '../../src/client/http-worker-api.js';
import { openNodeSender } from '../../src/client/node-sender.js';
import { SluiceClient } from '../../src/client/sluice-client.js';
import { SluiceError } from '../../src/domain/errors.js';
import type { Lease, TaskId, WorkerId } from '../../src/domain/ids.js';
import type { SluiceApi } from '../../src/protocol/api.js';
import { staleLease, unknownId, useHttp } from './support.js';

const http = useHttp();
const unknownTask = unknownId as TaskId;
const unknownWorker = unknownId as WorkerId;
const stale = { taskId: unknownTask, lease: staleLease as Lease };

const byNumber = (a: unknown, b: unknown) => Number(a) - Number(b);
const errorAt = (path: string): unknown => expect.objectContaining({ path });

let base: string;
let onRequest: (url: string) => void = () => undefined;
beforeAll(async () => {
  http().app.server.on('request', ({ url }) => {
    onRequest(url ?? '');
  });
  base = await http().app.listen({ host: '127.0.0.1', port: 0 });
});

describe.each([
  ['node', openNodeSender],
  ['fetch', openFetchSender],
])('over %s', (sender, openSender) => {
  const over = (url: string, options: HttpApiOptions = {}) =>
    new HttpWorkerApi(url, options, openSender);
  const together = `remote-together/${sender}`;

  describe('the same calls as in-process', () => {
    let remote: SluiceApi;
    beforeAll(() => {
      remote = over(base);
    });

    it('submits, gets, lists, explains, changes, cancels and replays', async () => {
      const draft = {
        taskType: 'chat',
        queue: 'remote/one',
        runAt: new Date(Date.now() + 30 * 86_400_000),
      };
      const receipt = await remote.submit({ ...draft, idempotencyKey: sender });
      const again = await remote.submit({ ...draft, idempotencyKey: sender });
      expect([receipt.created, again.created, again.taskId]).toEqual([true, false, receipt.taskId]);
      const { taskId } = receipt;
      const drifting = { currentStateDurationSeconds: expect.any(Number) as number };
      const here = await http().engine.getTask(taskId, { history: true });
      const there = await remote.getTask(taskId, { history: true });
      expect(there).toEqual({ ...here, ...drifting });
      const { items } = await remote.listTasks({ queue: 'remote/one' }, { limit: 1 });
      expect(items.map((task) => task.taskId)).toEqual([taskId]);
      expect(await remote.explainTask(taskId)).toEqual(await http().engine.explainTask(taskId));
      expect(await remote.changeTask(taskId, { priority: 'high' })).toMatchObject({
        priority: 'high',
      });
      const cancelled = { taskId, wasExecuting: false, workerNotified: false };
      expect(await remote.cancelTask(taskId)).toEqual(cancelled);
      expect(await remote.waitForTask(taskId, 60_000)).toMatchObject({ status: 'cancelled' });
      expect(await remote.replayTask(taskId)).toMatchObject({ taskId });
      const counted = await remote.countTasks({ queue: 'remote/one' }, { action: 'cancel' });
      expect(counted).toMatchObject({ count: 1, searchedBackTo: null, nextCursor: null });
      const urgent = { newPriority: 'low' } as const;
      expect(await remote.reprioritiseTasks({ queue: 'remote/one' }, urgent)).toEqual({
        reprioritised: 1,
        nextCursor: null,
      });
      expect(await remote.replayTasks({ queue: 'remote/one' }, { limit: 5 })).toEqual({
        replayed: 0,
        lastDueAt: null,
        nextCursor: null,
      });
      expect(await remote.cancelTasks({ queue: 'remote/one' })).toEqual({
        cancelled: 1,
        nextCursor: null,
      });
    });

    it('submits more at once than one request may carry, in order', async () => {
      const drafts = Array.from({ length: 5_003 }, (_, index) => ({
        taskType: index === 5_001 ? 'not a type' : 'chat',
        queue: 'remote-many',
        parameters: { index },
        delaySeconds: 3600,
      }));
      const outcomes = await remote.submitMany(drafts);
      expect(outcomes).toHaveLength(5_003);
      expect(outcomes.filter(({ kind }) => kind === 'refused')).toHaveLength(1);
      expect(outcomes[5_001]).toMatchObject({
        kind: 'refused',
        code: 'invalid_request',
        errors: [{ path: '/taskType' }],
      });
      const last = outcomes[5_002];
      if (last?.kind !== 'accepted') throw new Error('the last one was not accepted');
      const task = await remote.getTask(last.receipt.taskId);
      expect(task.parameters).toEqual({ index: 5_002 });
      await remote.cancelTasks({ queue: 'remote-many' });
    });

    it('R-LA3: what many submit at once goes in one request, and one that is refused hears it as if alone', async () => {
      const far = connecting(SluiceClient, over)(base);
      const requests: string[] = [];
      onRequest = (url) => requests.push(url);
      const chat = defineTask({ type: 'chat', run: () => null });
      const queueOf = (n: number) => (n === 7 ? 'not a queue!' : together);
      const settled = await Promise.allSettled(
        Array.from({ length: 30 }, (_, n) =>
          far.submit(chat, { n }, { queue: queueOf(n), delaySeconds: 3600 }),
        ),
      );
      onRequest = () => undefined;
      expect(requests).toEqual(['/api/v1/tasks/batch']);
      const refused = settled.flatMap((one, n) =>
        one.status === 'rejected' ? [[n, one.reason]] : [],
      );
      expect(refused).toEqual([
        [7, expect.objectContaining({ code: 'invalid_request', errors: [errorAt('/queue')] })],
      ]);
      expect(String(refused[0]?.[1])).not.toContain('/tasks/');
      const page = { limit: 100, include: ['parameters'] } as const;
      const { items } = await remote.listTasks({ queue: together }, page);
      expect(items.map(({ parameters }) => parameters?.n).sort(byNumber)).toEqual(
        [...Array(30).keys()].filter((n) => n !== 7),
      );
      await remote.cancelTasks({ queue: together });
      await far.close();
    });

    it('a lease alone decides about a result, whatever id it comes under', async () => {
      const first = await remote.register({ capacity: 1 });
      const again = await remote.register({ capacity: 1 });
      const { taskId } = await remote.submit({ taskType: 'chat', queue: 'remote-lease' });
      const offer = { availableCapacity: 1, waitMs: 60_000, queues: ['remote-lease'] };
      const [claimed] = (await remote.poll(first.workerId, offer)).tasks;
      if (claimed === undefined) throw new Error('nothing was claimed');
      const completed = { taskId, status: 'completed', result: 1 } as const;
      expect(await remote.report(again.workerId, [{ ...completed, lease: stale.lease }])).toEqual([
        { taskId, accepted: false, reason: 'lease_lost' },
      ]);
      expect(await remote.report(again.workerId, [{ ...completed, lease: claimed.lease }])).toEqual(
        [{ taskId, accepted: true, status: 'completed' }],
      );
      await remote.deregister(first.workerId);
      await remote.deregister(again.workerId);
    });

    it('works as a worker', async () => {
      const { workerId } = await remote.register({ capacity: 10, name: 'far' });
      const offer = { availableCapacity: 1, waitMs: 60_000, queues: ['remote-work'] };
      const polled = remote.poll(workerId, { ...offer, prefetch: true });
      const { taskId } = await remote.submit({ taskType: 'chat', queue: 'remote-work' });
      const [claimed] = (await polled).tasks;
      expect(claimed).toMatchObject({ taskId, attempt: 1, deadline: expect.any(Date) as Date });
      if (claimed === undefined) throw new Error('nothing was claimed');
      const held = { taskId, lease: claimed.lease };
      await remote.start(workerId, held);
      await remote.progress(workerId, held, { percent: 10 });
      await remote.progress(workerId, held, { percent: 50, message: 'half' });
      const beat = await remote.heartbeat(workerId, {
        currentLoad: 1,
        status: 'active',
        currentTasks: [taskId],
      });
      expect(beat).toEqual({ shouldDrain: false, cancelled: [], lost: [] });
      const report = { ...held, status: 'completed', result: { ok: 1 } } as const;
      const accepted = { taskId, accepted: true, status: 'completed' };
      expect(await remote.report(workerId, [report])).toEqual([accepted]);
      expect(await remote.report(workerId, [])).toEqual([]);
      expect(await remote.release(workerId, [held])).toEqual({ released: [], lost: [taskId] });
      expect(await remote.waitForTask(taskId, 0)).toMatchObject({ result: { ok: 1 } });
      expect(await remote.getWorker(workerId)).toMatchObject({ name: 'far', capacity: 10 });
      expect(await remote.drainWorker(workerId)).toMatchObject({ workerId });
      const { items } = await remote.listWorkers({ limit: 1000 });
      expect(items.map((worker) => worker.workerId)).toContain(workerId);
      await remote.deregister(workerId);
    });

    it('configures queues and limits', async () => {
      const limit = { unit: 'tokens', rate: 5, perSeconds: 60, burst: null };
      const view = { name: 'far/limit', ...limit, inForce: true };
      expect(await remote.putLimit('far/limit', limit)).toEqual(view);
      expect(await remote.getLimit('far/limit')).toEqual(view);
      expect(await remote.listLimits()).toContainEqual(view);
      const put = await remote.putQueue('far/queue', {
        limits: [{ use: 'far/limit' }],
        ageing: null,
      });
      expect(put.settings).toEqual((await http().engine.getQueue('far/queue')).settings);
      const until = new Date('2100-01-01T00:00:00Z');
      expect(await remote.pauseQueue('far/queue', until)).toMatchObject({
        settings: { paused: true },
      });
      expect(await remote.resumeQueue('far/queue')).toMatchObject({ settings: { paused: false } });
      expect((await remote.listQueues({ limit: 1000 })).items.map(({ name }) => name)).toContain(
        'far/queue',
      );
      await remote.putQueue('far/queue', {});
      await remote.deleteLimit('far/limit');
      expect(await remote.getStatistics()).toMatchObject({ workers: {} });
      const from = new Date('2026-01-31T12:00:00Z');
      const to = new Date('2026-01-31T12:02:00Z');
      const metrics = ['completed', 'wait_p95'];
      const series = { metrics, queue: 'far/queue', from, to, stepSeconds: 60 };
      expect(await remote.getSeries(series)).toEqual(await http().engine.getSeries(series));
      expect((await remote.getSeries(series)).values).toEqual({
        completed: [0, 0],
        wait_p95: [null, null],
      });
      const forecast = await remote.getForecast('far/queue');
      expect(forecast).toMatchObject({ queue: 'far/queue', waiting: 0, standstill: null });
      expect(forecast.emptyAt).toBeInstanceOf(Date);
      expect(await remote.listPushbacks('far/queue', { limit: 5 })).toEqual({
        items: [],
        nextCursor: null,
      });
      expect(await remote.listDeadLetters({ queue: 'far/queue' })).toMatchObject({ totalCount: 0 });
      const replay = { perSecond: 5, newPriority: 'high' } as const;
      expect(await remote.replayDeadLetters({ queue: 'far/queue', since: until }, replay)).toEqual({
        replayed: 0,
        lastDueAt: null,
        nextCursor: null,
      });
      expect(await remote.analyseDeadLetters()).toEqual([]);
    });

    it.each<[string, (api: SluiceApi) => Promise<unknown>]>([
      ['task_not_found', (api) => api.getTask(unknownTask)],
      ['task_not_found', (api) => api.waitForTask(unknownTask, 1000)],
      ['queue_not_found', (api) => api.getQueue('nobody-made-this')],
      ['limit_not_found', (api) => api.deleteLimit('nobody-made-this')],
      ['worker_not_found', (api) => api.getWorker(unknownWorker)],
      ['worker_unknown', (api) => api.poll(unknownWorker, { availableCapacity: 1 })],
      ['lease_lost', (api) => api.start(unknownWorker, stale)],
    ])('refuses with %s', async (code, call) => {
      await expect(call(remote)).rejects.toMatchObject({ name: 'SluiceError', code });
      await expect(call(http().engine)).rejects.toMatchObject({ name: 'SluiceError', code });
    });

    it('stops waiting when told to', async () => {
      const { taskId } = await remote.submit({ taskType: 'chat', queue: 'remote-abort' });
      const stop = new AbortController();
      const arrived = new Promise((resolve) => http().app.server.once('request', resolve));
      const waiting = remote.waitForTask(taskId, 60_000, stop.signal);
      await arrived;
      stop.abort();
      await expect(waiting).rejects.toThrow(/abort/);
    });
  });

  describe('when the other side is not what it should be', () => {
    const servers: Server[] = [];
    afterEach(() => {
      for (const server of servers.splice(0)) server.close().closeAllConnections();
    });

    async function standIn(answer: Parameters<typeof createServer>[1]): Promise<string> {
      const server = createServer(answer);
      servers.push(server);
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}/base/`;
    }

    it('sends its key, below the path that it was given', async () => {
      const seen: unknown[] = [];
      const url = await standIn((request, response) => {
        seen.push(request.url, request.headers.authorization);
        response
          .setHeader('content-type', 'application/json')
          .end('{"items":[],"next_cursor":null}');
      });
      await over(url, { apiKey: 'secret' }).listTasks({ tag: 'a b' });
      expect(seen).toEqual(['/base/api/v1/tasks?tag=a+b', 'Bearer secret']);
    });

    it('sends the user and password of its address to a proxy, and shows them in no error', async () => {
      const seen: unknown[] = [];
      const url = await standIn((request, response) => {
        seen.push(request.headers.authorization);
        response.writeHead(404).end();
      });
      const refused = over(url.replace('//', '//me:h%C3%BCt@')).getStatistics();
      await expect(refused).rejects.not.toThrow(/h%C3|hüt/);
      expect(seen).toEqual([`Basic ${Buffer.from('me:hüt').toString('base64')}`]);
    });

    it('tries a read again when the connection breaks, and a write never', async () => {
      let requests = 0;
      const url = await standIn((request, response) => {
        requests += 1;
        if (request.method === 'GET' && requests === 3)
          response.end('{"items":[],"next_cursor":null,"searched_back_to":null}');
        else request.destroy();
      });
      const api = over(url);
      expect(await api.listTasks({})).toEqual({
        items: [],
        nextCursor: null,
        searchedBackTo: null,
      });
      expect(requests).toBe(3);
      const refused = await api.submit({ taskType: 'chat' }).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(SluiceError);
      expect(refused).toMatchObject({ code: 'unavailable', cause: expect.any(Error) as Error });
      expect(requests).toBe(4);
    });

    it('gives up on an answer that does not come', async () => {
      const url = await standIn(() => undefined);
      const api = over(url, { timeoutMs: 20 });
      await expect(api.submit({ taskType: 'chat' })).rejects.toMatchObject({ code: 'unavailable' });
    });

    it.each([
      ['breaks off', 60_000, (response: ServerResponse) => response.destroy()],
      ['stalls', 50, () => undefined],
    ])('gives up on an answer that %s in the middle', async (_, timeoutMs, goOn) => {
      const url = await standIn((__, response) => {
        response.writeHead(200, { 'content-length': 1_000 });
        response.write('{"items":[', () => goOn(response));
      });
      const api = over(url, { timeoutMs });
      await expect(api.cancelTasks({ tag: 'a' })).rejects.toMatchObject({ code: 'unavailable' });
    });

    it.each([
      [308, 'invalid_request'],
      [502, 'unavailable'],
      [500, 'internal'],
      [404, 'route_not_found'],
      [200, 'internal'],
    ])('reads a %i of something in between as %s', async (status, code) => {
      const url = await standIn((_request, response) => {
        response.writeHead(status, { 'content-type': 'text/html' }).end('<h1>Proxy</h1>');
      });
      await expect(over(url).getStatistics()).rejects.toMatchObject({ code });
    });

    it('says where a redirect points to, and does not go there', async () => {
      const url = await standIn((_request, response) => {
        response.writeHead(308, { location: 'https://elsewhere.example/' }).end();
      });
      await expect(over(url).getStatistics()).rejects.toThrow(
        /answered 308 .* It points to https:\/\/elsewhere\.example\//,
      );
    });

    it('keeps the time that a refusal names', async () => {
      const url = await standIn((_request, response) => {
        response.writeHead(429, { 'content-type': 'application/problem+json' });
        response.end('{"code":"refused","status":429,"detail":"later","retry_after_seconds":7}');
      });
      await expect(over(url).submit({ taskType: 'chat' })).rejects.toMatchObject({
        code: 'refused',
        retryAfterSeconds: 7,
      });
    });
  });
});
