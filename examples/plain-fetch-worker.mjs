// A worker in plain HTTP calls, as it can be written in any language:
// node examples/plain-fetch-worker.mjs [http://127.0.0.1:7700]
import { setTimeout as delay } from 'node:timers/promises';

const server = process.argv[2] ?? 'http://127.0.0.1:7700';
const key = process.env.SLUICE_API_KEY; // needs the scope `worker`; absent: the server has no keys
const authorization = key ? { authorization: `Bearer ${key}` } : {};
const offer = { task_types: ['count-words'], capacity: 10 };
const running = new Map(); // lease → { task_id, abort }
let stopping = false;
/** Refusals that another try would not change. */
const final = new Set(['lease_lost', 'payload_too_large', 'invalid_request', 'invalid_json']);

/** Your work goes here. This counts words, and takes as many seconds as it is told to. */
async function countWords({ text, seconds = 0 }, signal) {
  await delay(seconds * 1000, undefined, { signal });
  return { words: text.split(' ').length };
}

/** Null when no answer of Sluice came: worth another try. A proxy may answer in its place. */
async function post(path, body) {
  const headers = { 'content-type': 'application/json', ...authorization };
  const signal = AbortSignal.timeout(10_000);
  const request = { method: 'POST', headers, body: JSON.stringify(body), signal };
  const response = await fetch(`${server}/internal/workers/${path}`, request).catch(() => null);
  const answer = await response?.json().catch(() => null);
  const isProblem = answer !== null && answer?.type === `/docs#${answer?.code}`;
  return response?.ok || isProblem ? answer : null;
}

async function untilAnswered(send) {
  return (await send()) ?? delay(1000).then(() => untilAnswered(send));
}

async function register() {
  const answer = await untilAnswered(() => post('register', offer));
  console.log(`registered as ${answer.worker_id}`);
  return answer;
}
let registered = register();

async function call(name, body) {
  const known = registered;
  const answer = await post(`${(await known).worker_id}/${name}`, body);
  if (!answer?.code) return answer;
  if (final.has(answer.code)) throw new Error(`${answer.code}: ${answer.detail}`);
  // The server forgot this worker. Under its new id its leases stay good.
  if (answer.code === 'worker_unknown' && registered === known) registered = register();
  return null;
}

async function run({ task_id, lease, parameters, timeout_seconds }) {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort('TIMEOUT'), timeout_seconds * 1000);
  running.set(lease, { task_id, abort });
  const report = (end) => untilAnswered(() => call('result', { task_id, lease, ...end }));
  try {
    await report({ status: 'completed', result: await countWords(parameters, abort.signal) });
  } catch (error) {
    const code = abort.signal.reason ?? 'ERROR';
    // Of a cancelled task the server only wants to know that it has stopped.
    if (code === 'CANCELLED') await call('release', { tasks: [{ task_id, lease }] });
    else await report({ status: 'failed', error: { code, message: String(error) } });
  }
  clearTimeout(timer);
  running.delete(lease);
  console.log(`${task_id} ${abort.signal.reason ?? 'ended'}`);
}

function heed({ cancelled = [], lost = [], drain = false, should_drain = false }) {
  for (const { task_id, abort } of running.values())
    if ([...cancelled, ...lost].includes(task_id)) abort.abort('CANCELLED');
  stopping ||= drain || should_drain;
}

/** Whoever is silent for longer than its lease loses its tasks to others. */
async function beat() {
  const current_tasks = Array.from(running.values(), ({ task_id }) => task_id);
  // Should it have to register again, its tasks are its own by their leases.
  const load = { current_load: running.size, current_tasks, leases: [...running.keys()] };
  heed((await call('heartbeat', { status: stopping ? 'draining' : 'active', ...load })) ?? {});
}

process.once('SIGTERM', () => (stopping = true)).once('SIGINT', () => (stopping = true));
const beats = setInterval(beat, (await registered).heartbeat_interval_ms);
while (!stopping) {
  const free = offer.capacity - running.size;
  const answer = free ? await call('poll', { available_capacity: free, wait_seconds: 2 }) : null;
  answer?.tasks.forEach(run);
  heed(answer ?? {});
  if (answer === null) await delay(free ? 1000 : 20);
}
while (running.size > 0) await delay(20);
clearInterval(beats);
await post(`${(await registered).worker_id}/deregister`, {});
