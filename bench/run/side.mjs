// One contender in one round, alone in its process: node side.mjs '{"module": …}'. Plain JavaScript, so
// that nothing but the contender runs in it. Its parent hears of every step, and reads at both marks what
// the processes have used.
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { nowMs } from './clock.mjs';
import { Tally } from './tally.mjs';

const given = JSON.parse(process.argv[2]);
const { tasks, submits, samples, warmUp } = given;
const concurrentSubmits = 50;
const drainLookMs = 1;
/** Some contenders submit a thousand a second. */
const singleWarmUp = Math.min(warmUp, 2_000);

// A parent that is gone wants nothing any more.
process.once('disconnect', () => process.exit(1));

const { open } = await import(given.module);
const contender = await open(given);
let twice = 0;

step('warm-up');
await contender.enqueue(warmUp);
await run(warmUp);
await submitSingly(singleWarmUp);
await run(singleWarmUp);

await mark('begin');
step('bulk enqueue');
const bulkSeconds = await timed(() => contender.enqueue(tasks));
step('process');
const processSeconds = await run(tasks);
await mark('end');

step('single submits');
const submitSeconds = await timed(() => submitSingly(submits));
await run(submits);

step('submit to start');
const latenciesMs = await measureLatencies();
await contender.close();

const result = {
  bulkPerSecond: tasks / bulkSeconds,
  processPerSecond: tasks / processSeconds,
  submitsPerSecond: submits / submitSeconds,
  latenciesMs,
  twice,
};
process.send({ kind: 'result', result }, () => process.exit(0));

function step(name) {
  process.send({ kind: 'step', name });
}

/** Waits until the parent has read what it wants. */
async function mark(name) {
  process.send({ kind: 'mark', name });
  await once(process, 'message');
}

async function timed(work) {
  const beganMs = nowMs();
  await work();
  return (nowMs() - beganMs) / 1000;
}

/**
 * A backlog of tasks 0 to count - 1, from when the worker is there, or the first one began, until nothing is
 * left in the store. How long a worker takes to connect is not asked.
 */
async function run(count) {
  const tally = new Tally(count);
  const stop = await contender.startWorker((index, atMs) => tally.see(index, atMs));
  const readyMs = nowMs();
  await tally.all;
  while (!(await contender.isDrained())) await delay(drainLookMs);
  const endedMs = nowMs();
  await stop();
  twice += tally.twice;
  return (endedMs - Math.min(readyMs, tally.firstMs)) / 1000;
}

async function submitSingly(count) {
  let next = 0;
  const submitter = async () => {
    while (next < count) await contender.submit(next++);
  };
  await Promise.all(Array.from({ length: concurrentSubmits }, submitter));
}

/** One at a time, with a pause after each: the system is idle when the next one comes. */
async function measureLatencies() {
  let began = () => undefined;
  const stop = await contender.startWorker((index, atMs) => began(index, atMs));
  const measured = [];
  const unmeasured = 20;
  for (let index = 0; index < unmeasured + samples; index += 1) {
    await delay(pauseMs(index));
    const started = new Promise((resolve) => {
      began = (startedIndex, atMs) => {
        if (startedIndex === index) resolve(atMs);
        else twice += 1;
      };
    });
    const submittedMs = nowMs();
    await contender.submit(index);
    const startedMs = await started;
    if (index >= unmeasured) measured.push(startedMs - submittedMs);
  }
  await stop();
  return measured;
}

/** Not always the same: it would fall into step with whoever polls. */
function pauseMs(index) {
  return 5 + ((index * 7) % 11);
}
