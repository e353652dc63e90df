// A worker in plain HTTP calls, in any language that has them: register, poll, report, heartbeat.
// node plain-fetch-worker.mjs [server]
const server = process.argv[2] ?? 'http://127.0.0.1:7700';

async function post(path, body) {
  const response = await fetch(`${server}/internal/workers/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${answer.code}: ${answer.detail}`);
  return answer;
}

function countWords({ text }) {
  return { words: text.split(' ').length };
}

async function run({ task_id, lease, parameters }) {
  held.add(task_id);
  try {
    const result = countWords(parameters);
    await post(`${worker_id}/result`, { task_id, lease, status: 'completed', result });
  } catch (error) {
    const failure = { code: 'ERROR', message: String(error) };
    await post(`${worker_id}/result`, { task_id, lease, status: 'failed', error: failure });
  } finally {
    held.delete(task_id);
  }
}

const slots = 10;
const held = new Set();
const offer = { task_types: ['count-words'], capacity: slots };
const { worker_id, heartbeat_interval_ms } = await post('register', offer);
console.log(`worker ${worker_id} is ready`);

// Whoever is silent for longer than its lease loses its tasks to others.
const heartbeat = setInterval(() => {
  const beat = { status: 'active', current_load: held.size, current_tasks: [...held] };
  post(`${worker_id}/heartbeat`, beat).catch(console.error);
}, heartbeat_interval_ms);

let stopping = false;
process.once('SIGTERM', () => (stopping = true));
while (!stopping) {
  const poll = { available_capacity: slots - held.size, wait_seconds: 1 };
  const { tasks } = await post(`${worker_id}/poll`, poll);
  for (const task of tasks) void run(task);
}
clearInterval(heartbeat);
await post(`${worker_id}/deregister`, {});
