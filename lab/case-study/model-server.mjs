// The models, without the bill: node model-server.mjs. Each call takes as long as it is told to, and
// begin and end of every call are written down by this server's own clock.
//   POST /call   { task, model, ms, attempt }        answered when it is done
//   POST /batch  { calls: [{ task, … }, …] }         answered when the slowest of them is done
//   PUT /away, DELETE /away                          503 to all that is under way and all that comes
//   GET /log                                         every call; GET /done: how many were answered
import { Buffer } from 'node:buffer';
import { createServer } from 'node:http';

const log = [];
/** What ends each call that is under way. */
const underWay = new Set();
let done = 0;
let isAway = false;

const server = createServer((request, response) => {
  void answer(request).then(({ status, body }) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  });
});

async function answer(request) {
  switch (`${request.method} ${request.url}`) {
    case 'POST /call':
      return call(await read(request));
    case 'POST /batch':
      return callAll((await read(request)).calls);
    case 'PUT /away':
      isAway = true;
      for (const end of underWay) end(503);
      return { status: 200, body: { away: true } };
    case 'DELETE /away':
      isAway = false;
      return { status: 200, body: { away: false } };
    case 'GET /log':
      return { status: 200, body: log };
    case 'GET /done':
      return { status: 200, body: { done } };
    default:
      return { status: 404, body: { error: 'There is no such call' } };
  }
}

async function callAll(calls) {
  const answers = await Promise.all(calls.map(call));
  const failed = answers.find(({ status }) => status !== 200);
  return failed ?? { status: 200, body: answers.map(({ body }) => body) };
}

async function call({ task, model, ms, attempt = 1 }) {
  const entry = { task, model, attempt, startedAt: now(), endedAt: null, status: null };
  log.push(entry);
  const status = isAway ? 503 : await whenDone(ms);
  entry.endedAt = now();
  entry.status = status;
  if (status === 200) done += 1;
  return {
    status,
    body: status === 200 ? { task, text: `${model} on ${task}` } : { error: 'away' },
  };
}

function whenDone(ms) {
  return new Promise((resolve) => {
    const timer = setTimeout(() => end(200), ms);
    const end = (status) => {
      clearTimeout(timer);
      underWay.delete(end);
      resolve(status);
    };
    underWay.add(end);
  });
}

/** Milliseconds of the machine's clock, with their fractions. */
function now() {
  return performance.timeOrigin + performance.now();
}

async function read(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}

// A worker keeps its connections; one that is closed under it would fail a task.
server.keepAliveTimeout = 0;
process.once('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => {
  console.log(`The models are ready at http://127.0.0.1:${server.address().port}`);
});
