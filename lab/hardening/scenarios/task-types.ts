import { median } from '../../shared/measure.js';
import type { Lab } from '../../shared/lab.js';
import { count, judged, ms, type Row, type Scenario } from '../../shared/scenario.js';
import { Cluster } from '../../limits/cluster.js';

const hostile = 'hostile';
const maxLanes = 10_000;
const wantedMs = 50;

/** What a call takes, in the middle of some. */
async function timed(calls: number, call: () => Promise<unknown>): Promise<number> {
  const took: number[] = [];
  for (let n = 0; n < calls; n += 1) {
    const beganMs = performance.now();
    await call();
    took.push(performance.now() - beganMs);
  }
  return median(took);
}

async function answered(url: string, path: string, body?: unknown): Promise<Response> {
  const answer = await fetch(`${url}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${path} was answered ${answer.status}`);
  return answer;
}

async function submitOne(url: string, queue: string, taskType: string): Promise<Response> {
  return answered(url, '/api/v1/tasks', { task_type: taskType, queue });
}

async function measure(lab: Lab, ready: 'memory' | 'redis'): Promise<Row[]> {
  await using cluster = await Cluster.start(lab.postgresUrl, { servers: 1, ready });
  const [url = ''] = cluster.urls;
  const types = lab.size(50_000, 2_000);
  await cluster.put(hostile, { maxLanes: lab.size(maxLanes, 1_000) });
  let refused = 0;
  lab.progress.say(`  ${ready}: ${count(types)} task types are submitted`);
  for (let from = 0; from < types; from += 1_000) {
    const tasks = Array.from({ length: 1_000 }, (_, index) => ({
      task_type: `type-${from + index}`,
      queue: hostile,
    }));
    const answer = (await (await answered(url, '/api/v1/tasks/batch', { tasks })).json()) as {
      readonly results: readonly { readonly error?: { readonly code?: string } }[];
    };
    refused += answer.results.filter(({ error }) => error?.code === 'too_many_lanes').length;
  }
  const registered = (await (
    await answered(url, '/internal/workers/register', { task_types: ['*'], capacity: 5 })
  ).json()) as { readonly worker_id: string };
  const poll = async () => {
    const path = `/internal/workers/${registered.worker_id}/poll`;
    const answer = await answered(url, path, { available_capacity: 1 });
    const { tasks } = (await answer.json()) as { readonly tasks: readonly unknown[] };
    if (tasks.length !== 1) throw new Error('a poll got nothing, and thousands wait');
  };
  await poll();
  const calls = lab.size(50, 10);
  const took = {
    'a submit there': await timed(calls, () => submitOne(url, hostile, 'type-1')),
    'a submit to another queue': await timed(calls, () => submitOne(url, 'other', 'plain')),
    '/metrics': await timed(5, () => answered(url, '/metrics')),
    'a poll for every type': await timed(calls, poll),
  };
  const lanes = lab.size(maxLanes, 1_000);
  return [
    judged(
      {
        what: `${ready}: of ${count(types)} task types in one queue, refused with too_many_lanes`,
        measured: count(refused),
        numbers: { refused, types },
      },
      count(types - lanes),
      refused === types - lanes,
    ),
    ...Object.entries(took).map(([what, tookMs]) =>
      judged(
        { what: `${ready}: ${what}, median`, measured: ms(tookMs), numbers: { tookMs } },
        `≤ ${ms(wantedMs)}`,
        tookMs <= wantedMs,
      ),
    ),
  ];
}

export const taskTypes: Scenario = {
  name: 'task-types',
  about: '50,000 unique task types in one queue: submits, polls and metrics there and elsewhere',
  run: async (lab) => [...(await measure(lab, 'memory')), ...(await measure(lab, 'redis'))],
};
