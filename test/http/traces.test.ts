import { describe, expect, it } from 'vitest';
import { post, useHttp, type Call } from './support.js';
import { usingTasks } from './using-tasks.js';

const http = useHttp();
const call = (one: Call) => http().call(one);
const { register } = usingTasks(call);

const traceId = '0af7651916cd43dd8448eb211c80319c';
const traceparent = `00-${traceId}-b7ad6b7169203331-01`;
const other = `00-${traceId}-00f067aa0ba902b7-00`;

interface Traced {
  readonly task_id: string;
  readonly trace_id: string;
  readonly traceparent?: string;
}

async function submit(body: object, headers: Record<string, string> = {}): Promise<Traced> {
  const answer = await call(post('/api/v1/tasks', { task_type: 'chat', ...body }, headers));
  expect(answer.status).toBe(201);
  return answer.json<Traced>();
}

async function poll(queue: string): Promise<readonly Traced[]> {
  const worker = await register();
  const answer = await call(
    post(`/internal/workers/${worker}/poll`, {
      ...{ available_capacity: 10, wait_seconds: 20, queues: [queue] },
    }),
  );
  return answer.json<{ tasks: Traced[] }>().tasks;
}

const ownId = ({ task_id: taskId }: Traced): string => taskId.replaceAll('-', '');

describe('the trace of a task over HTTP', () => {
  it('R-OB8: is its own id when the submit names none', async () => {
    const receipt = await submit({ queue: 'no-trace' });
    const [task] = await poll('no-trace');
    const read = await call({ url: `/api/v1/tasks/${receipt.task_id}` });
    const listed = await call({ url: '/api/v1/tasks?queue=no-trace' });
    const [first] = listed.json<{ items: Traced[] }>().items;
    const traces = [receipt, task, read.json<Traced>(), first].map((one) => one?.trace_id);
    expect(traces).toEqual(Array(4).fill(ownId(receipt)));
    expect(task).not.toHaveProperty('traceparent');
  });

  it('R-OB8: a traceparent header reaches the worker whole', async () => {
    const receipt = await submit({ queue: 'header' }, { traceparent });
    expect(receipt.trace_id).toBe(traceId);
    expect(await poll('header')).toMatchObject([{ trace_id: traceId, traceparent }]);
  });

  it('R-OB8: a traceparent in the body counts before the header, beside a trace id', async () => {
    const body = { queue: 'body', trace_id: 'order-17', traceparent: other };
    const receipt = await submit(body, { traceparent });
    expect(receipt.trace_id).toBe('order-17');
    const expected = { trace_id: 'order-17', traceparent: other };
    expect(await poll('body')).toMatchObject([expected]);
  });

  it('R-OB8: the tasks of a batch have the header in common, or each its own', async () => {
    const task = { task_type: 'chat', queue: 'traced-batch' };
    const tasks = [task, { ...task, traceparent: other }, { ...task, traceparent: 'x' }];
    const answer = await call(post('/api/v1/tasks/batch', { tasks }, { traceparent }));
    expect(answer.json().results).toMatchObject([
      { task: { trace_id: traceId } },
      { task: { trace_id: traceId } },
      { error: { errors: [{ path: '/tasks/2/traceparent' }] } },
    ]);
    const polled = await poll('traced-batch');
    expect(polled.map((one) => one.traceparent).toSorted()).toEqual(
      [other, traceparent].toSorted(),
    );
  });

  it('R-OB8: a header that is not well-formed is ignored, a field is refused', async () => {
    const broken = `00-${traceId}-b7ad6b7169203331`;
    const receipt = await submit({ queue: 'broken' }, { traceparent: broken });
    expect(receipt.trace_id).toBe(ownId(receipt));
    const refused = await call(post('/api/v1/tasks', { task_type: 'chat', traceparent: broken }));
    expect([refused.status, refused.json().errors]).toEqual([
      400,
      [
        {
          path: '/traceparent',
          message: 'must be a W3C traceparent, like 00-<32 hex>-<16 hex>-01',
        },
      ],
    ]);
  });

  it('R-OB8: a replayed task keeps its traceparent, and says how long it waited', async () => {
    const { task_id: taskId } = await submit({ queue: 'replayed' }, { traceparent });
    await call({ method: 'DELETE', url: `/api/v1/tasks/${taskId}` });
    await call(post(`/api/v1/tasks/${taskId}/replay`, {}));
    const [task] = await poll('replayed');
    expect(task).toMatchObject({ traceparent, waited_seconds: expect.any(Number) as unknown });
  });
});
