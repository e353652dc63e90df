// Sends one kind of request all the time, and writes down what was answered: node flood.mjs JSON
// { url, path, body, headers, clients }: as fast as so many callers get answers, who stay away for a
// second when they are refused; or { …, rate }: so many a second, whatever is answered, over as many
// connections as it takes.
import { writeFileSync } from 'node:fs';
import { Lane, requestText } from './lane.mjs';
import { Tally } from './tally.mjs';

const options = JSON.parse(process.argv[2]);
const { url, clients, rate, warmUpMs, durationMs, report } = options;
const everyMs = 5;
const politeMs = 1_000;
const maxLanes = 2_000;
const request = requestText(options);

let tally = new Tally();
let isOver = false;
const idle = [];
let lanes = 0;

function closedLoop() {
  for (let client = 0; client < clients; client += 1) callAgain(new Lane(url));
}

function callAgain(lane) {
  const sentMs = performance.now();
  lane.call(request, (status, head) => {
    tally.note(status, head, performance.now() - sentMs);
    if (isOver) return;
    if (status === 429 || status === 503) setTimeout(callAgain, politeMs, lane);
    else callAgain(lane);
  });
}

/** Each request is due at its own time, and its answer is as late as it is after that. */
function openLoop() {
  const beganMs = performance.now();
  let sent = 0;
  const timer = setInterval(() => {
    if (isOver) return clearInterval(timer);
    const due = Math.floor(((performance.now() - beganMs) * rate) / 1000);
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
  lane.call(request, (status, head) => {
    tally.note(status, head, performance.now() - dueMs);
    idle.push(lane);
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
setTimeout(() => (tally = new Tally()), warmUpMs);
setTimeout(finish, warmUpMs + durationMs);

function finish() {
  isOver = true;
  writeFileSync(report, JSON.stringify(tally.report()));
  process.exit();
}
process.once('disconnect', () => process.exit());
