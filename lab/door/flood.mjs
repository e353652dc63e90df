// Sends one kind of request all the time, and writes down what was answered: node flood.mjs JSON
// { url, path, body, headers, clients }: as fast as so many callers get answers, who stay away for a
// second when they are refused; or { …, rate }: so many a second, whatever is answered, over as many
// connections as it takes.
import { writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Lane, requestText } from './lane.mjs';
import { Tally } from './tally.mjs';

const options = JSON.parse(process.argv[2]);
const { url, clients, rate, warmUpMs, durationMs, report } = options;
const everyMs = 5;
const politeMs = 1_000;
const patienceMs = 10_000;
const maxLanes = 2_000;
const request = requestText(options);

const beganMs = performance.now();
const tally = new Tally();
let isOver = false;
const idle = [];
let lanes = 0;
let unanswered = 0;

function closedLoop() {
  for (let client = 0; client < clients; client += 1) callAgain(new Lane(url));
}

function callAgain(lane) {
  if (isOver) return;
  send(lane, performance.now(), (status) => {
    if (status === 429 || status === 503) setTimeout(callAgain, politeMs, lane);
    else callAgain(lane);
  });
}

/** Each request is due at its own time, and its answer is as late as it is after that. */
function openLoop() {
  let sent = 0;
  const timer = setInterval(() => {
    if (isOver) return clearInterval(timer);
    // The first is due at once.
    const due = 1 + Math.floor(((performance.now() - beganMs) * rate) / 1000);
    for (; sent < due; sent += 1) {
      const lane = idle.pop() ?? anotherLane();
      if (lane === null) break;
      callOnce(lane, beganMs + (sent * 1000) / rate);
    }
    if (sent < due) tally.noteUnsent(due - sent);
    sent = due;
  }, everyMs);
}

function callOnce(lane, dueMs) {
  send(lane, dueMs, () => idle.push(lane));
}

/** What was due while it warmed up does not count. */
function send(lane, dueMs, onAnswer) {
  unanswered += 1;
  const sentMs = performance.now();
  lane.call(request, (status, head) => {
    unanswered -= 1;
    const nowMs = performance.now();
    if (dueMs >= beganMs + warmUpMs) tally.note(status, head, nowMs - dueMs, sentMs - dueMs);
    onAnswer(status);
  });
}

function anotherLane() {
  if (lanes === maxLanes) return null;
  lanes += 1;
  return new Lane(url);
}

if (rate === undefined) closedLoop();
else openLoop();
console.log('The flood is ready');
setTimeout(() => tally.begin(), warmUpMs);
setTimeout(() => void finish(), warmUpMs + durationMs);

/** What was sent may still be answered: the slowest would not count otherwise. */
async function finish() {
  isOver = true;
  tally.end();
  const endMs = performance.now() + patienceMs;
  while (unanswered > 0 && performance.now() < endMs) await delay(everyMs);
  writeFileSync(report, JSON.stringify({ ...tally.report(), unanswered }));
  process.exit();
}
process.once('disconnect', () => process.exit());
