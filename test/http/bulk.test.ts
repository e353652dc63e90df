import { describe, expect, it } from 'vitest';
import type { TaskCountWire } from '../../src/protocol/bulk-schema.js';
import type { ReplayedWire } from '../../src/protocol/dead-letters-schema.js';
import type { TaskPageWire, TaskWire } from '../../src/protocol/tasks-schema.js';
import { encodeCursor } from '../../src/store/paging.js';
import { post, unknownId, useHttp, type Call, type Problem } from './support.js';
import { usingTasks, type Claimed } from './using-tasks.js';

const http = useHttp();
const call = (one: Call) => http().call(one);
const { submit, register, makeDeadLetter } = usingTasks(call);

async function submitSome(count: number, draft: object): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) ids.push(await submit(draft));
  return ids;
}

const countOf = async (query: string) =>
  (await call({ url: `/api/v1/tasks/count?${query}` })).json<TaskCountWire>();
const taskOf = async (id: string) => (await call({ url: `/api/v1/tasks/${id}` })).json<TaskWire>();

describe('counting tasks', () => {
  it('R-OB4: counts what matches, and what an action would change', async () => {
    await makeDeadLetter('counted');
    const [first = ''] = await submitSome(3, { queue: 'counted', tags: ['c'] });
    await call({ method: 'DELETE', url: `/api/v1/tasks/${first}` });
    const all = await countOf('queue=counted');
    expect(all).toMatchObject({ count: 4, next_cursor: null, searched_back_to: null });
    expect(all.scanned).toBeGreaterThanOrEqual(4);
    const found = await Promise.all(
      ['action=cancel', 'action=replay', 'action=reprioritise', 'status=cancelled', 'tag=c'].map(
        async (query) => (await countOf(`queue=counted&${query}`)).count,
      ),
    );
    expect(found).toEqual([2, 1, 2, 1, 3]);
    expect((await countOf('')).count).toBeGreaterThanOrEqual(4);
  });

  it.each(['action=delete', 'cursor=x', 'status=ready', 'text=a', 'limit=5'])(
    'R-AD7: refuses %s',
    async (query) => {
      const answer = await call({ url: `/api/v1/tasks/count?queue=q&${query}` });
      expect([answer.status, answer.json().code]).toEqual([400, 'invalid_request']);
    },
  );
});

describe('R-OB4: changing all tasks of a filter', () => {
  it('cancels as many as one call may, and goes on from there', async () => {
    const ids = await submitSome(5, { queue: 'cancelled-in-steps' });
    const cancelled: number[] = [];
    let cursor: string | null = null;
    do {
      const step: object = { limit: 2, ...(cursor === null ? {} : { cursor }) };
      const answer = await call(
        post('/api/v1/tasks/cancel', { queue: 'cancelled-in-steps', ...step }),
      );
      const wire = answer.json<{ cancelled: number; next_cursor: string | null }>();
      cancelled.push(wire.cancelled);
      cursor = wire.next_cursor;
    } while (cursor !== null);
    expect(cancelled).toEqual([2, 2, 1]);
    expect((await taskOf(ids[0] ?? '')).status).toBe('cancelled');
  });

  it('cancels a workflow step by step', async () => {
    await submitSome(3, { workflow_id: 'in-steps' });
    const body = { workflow_id: 'in-steps', limit: 2 };
    const first = await call(post('/api/v1/tasks/cancel', body));
    const { next_cursor: cursor } = first.json();
    expect(first.json()).toMatchObject({ cancelled: 2 });
    const rest = await call(post('/api/v1/tasks/cancel', { ...body, cursor }));
    expect(rest.json()).toEqual({ cancelled: 1, next_cursor: null });
    const elsewhere = await call(post('/api/v1/tasks/cancel', { queue: 'q', cursor }));
    expect(elsewhere.json().code).toBe('invalid_request');
  });

  it('replays dead letters and failed tasks, oldest first and spread over time', async () => {
    const queue = 'replayed-in-bulk';
    const ids = [
      await makeDeadLetter(queue),
      await makeDeadLetter(queue),
      await makeDeadLetter(queue),
    ];
    const body = { queue, new_priority: 'low', per_second: 1, limit: 2 };
    const first = (await call(post('/api/v1/tasks/replay', body))).json<ReplayedWire>();
    expect(first.replayed).toBe(2);
    const rest = await call(post('/api/v1/tasks/replay', { ...body, cursor: first.next_cursor }));
    expect(rest.json()).toMatchObject({ replayed: 1, next_cursor: null });
    const tasks = await Promise.all(ids.map(taskOf));
    expect(tasks.map(({ status, priority }) => [status, priority])).toEqual([
      [expect.stringMatching(/pending|queued/), 'low'],
      ['pending', 'low'],
      ['pending', 'low'],
    ]);
    const [firstDue = 0, ...due] = tasks.map(({ run_at }) => Date.parse(run_at ?? ''));
    expect(due.map((at) => at - firstDue)).toEqual([1_000, 2_000]);
  });

  it('replays cancelled tasks when the filter says so', async () => {
    const [id = ''] = await submitSome(1, { queue: 'taken-back' });
    await call(post('/api/v1/tasks/cancel', { queue: 'taken-back' }));
    const without = await call(post('/api/v1/tasks/replay', { queue: 'taken-back' }));
    expect(without.json()).toMatchObject({ replayed: 0 });
    const replayed = await call(
      post('/api/v1/tasks/replay', { queue: 'taken-back', status: 'cancelled' }),
    );
    expect(replayed.json()).toMatchObject({ replayed: 1 });
    expect((await taskOf(id)).status).not.toBe('cancelled');
  });

  it('re-prioritises what waits: it is handed out first, in the order of its age', async () => {
    const queue = 'urgent-now';
    await submitSome(2, { queue });
    const ids = await submitSome(3, { queue, tags: ['now'] });
    const body = { queue, tag: 'now', new_priority: 'high' };
    const first = await call(post('/api/v1/tasks/reprioritise', { ...body, limit: 2 }));
    const { next_cursor: cursor } = first.json();
    expect(first.json()).toMatchObject({ reprioritised: 2 });
    const rest = await call(post('/api/v1/tasks/reprioritise', { ...body, cursor }));
    expect(rest.json()).toEqual({ reprioritised: 1, next_cursor: null });
    const again = await call(post('/api/v1/tasks/reprioritise', body));
    expect(again.json()).toEqual({ reprioritised: 0, next_cursor: null });
    const worker = await register();
    const claimed: string[] = [];
    while (claimed.length < 3) {
      const poll = { available_capacity: 1, wait_seconds: 20, queues: [queue] };
      const answer = await call(post(`/internal/workers/${worker}/poll`, poll));
      claimed.push(...answer.json<{ tasks: Claimed[] }>().tasks.map(({ task_id }) => task_id));
    }
    expect(claimed).toEqual(ids);
  });

  it.each([
    ['cancel', {}, ''],
    ['cancel', { limit: 5 }, ''],
    ['cancel', { queue: 'q', limit: 0 }, '/limit'],
    ['cancel', { queue: 'q', limit: 10_001 }, '/limit'],
    ['cancel', { queue: 'q', cursor: encodeCursor('5') }, 'cursor'],
    ['replay', {}, ''],
    ['replay', { per_second: 5 }, ''],
    ['replay', { status: 'queued' }, '/status'],
    ['replay', { queue: 'q', cursor: encodeCursor(unknownId) }, 'cursor'],
    ['reprioritise', { queue: 'q' }, '/new_priority'],
    ['reprioritise', { new_priority: 'high' }, ''],
    ['reprioritise', { queue: 'q', new_priority: 'urgent' }, '/new_priority'],
    ['reprioritise', { queue: 'q', new_priority: 'high', status: 'failed' }, '/status'],
    ['reprioritise', { queue: 'q', new_priority: 'high', cursor: 'x' }, 'cursor'],
    ['reprioritise', { queue: 'q', new_priority: 'high', text: 'a' }, '/text'],
  ])('R-AD7: refuses %s with %j', async (action, body, path) => {
    const answer = await call(post(`/api/v1/tasks/${action}`, body));
    const { code, errors } = answer.json<Problem>();
    expect([answer.status, code, errors?.[0]?.path]).toEqual([400, 'invalid_request', path]);
  });
});

describe('text in parameters', () => {
  it('R-OB4: finds tasks by it, with the other filters', async () => {
    const id = await submit({ queue: 'texts', parameters: { prompt: 'about needles & 100 %' } });
    await submit({ queue: 'texts', parameters: { prompt: 'about hay' } });
    const found = async (query: string) => {
      const answer = await call({ url: `/api/v1/tasks?queue=texts&${query}` });
      const { items, ...rest } = answer.json<TaskPageWire>();
      return { ...rest, ids: items.map(({ task_id }) => task_id) };
    };
    const end = { next_cursor: null, searched_back_to: null };
    expect(await found('text=needles%20%26%20100%20%25')).toEqual({ ids: [id], ...end });
    expect(await found('text=needle%25')).toEqual({ ids: [], ...end });
    expect(await found('text=about&status=completed')).toEqual({ ids: [], ...end });
    const first = await found('text=about&limit=1');
    expect(first.searched_back_to).not.toBeNull();
    const second = await found(`text=about&limit=1&cursor=${first.next_cursor ?? ''}`);
    expect(second.ids).toEqual([id]);
  });

  it.each(['text=', `text=${'x'.repeat(101)}`, 'text=a%00b'])(
    'R-AD7: refuses %s',
    async (query) => {
      const answer = await call({ url: `/api/v1/tasks?${query}` });
      expect([answer.status, answer.json().code]).toEqual([400, 'invalid_request']);
    },
  );
});
