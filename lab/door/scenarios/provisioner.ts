import { join } from 'node:path';
import type { Lab } from '../../shared/lab.js';
import { count, judged, seconds, type Row, type Scenario } from '../../shared/scenario.js';
import { Fleet, steps } from '../../workers/fleet.js';
import { startFailingWebhook } from '../failing-webhook.js';

const tasks = 500;
const most = 3;
const concurrency = 5;
const stepMs = 100;
const intervalSeconds = 1;
const quietSeconds = 3;
const failingMs = 20_000;
/** After 0, 2, 4 and 8 s, and a little sooner each time by chance; without backoff there were 20. */
const mostCalls = 6;
const module = join(import.meta.dirname, '../tasks.mjs');

const scaling = [
  ...['--scale-max', String(most), '--scale-concurrency', String(concurrency)],
  ...['--scale-interval-seconds', String(intervalSeconds)],
  ...['--scale-quiet-seconds', String(quietSeconds)],
];

export const provisioner: Scenario = {
  name: 'provisioner',
  about: `no worker, ${tasks} tasks of ${stepMs} ms, and a server that starts up to ${most} worker processes of ${concurrency} slots; then one that always fails`,
  run: async (lab) => [...(await processRows(lab)), ...(await failingRows(lab))],
};

async function processRows(lab: Lab): Promise<Row[]> {
  await using fleet = await Fleet.start(lab.postgresUrl, {
    serveArgs: ['--scale-module', module, ...scaling],
  });
  const before = await countWorkers(fleet);
  const beganMs = performance.now();
  await fleet.submit(steps(tasks, stepMs));
  let mostSeen = 0;
  await lab.progress.until('provisioner, completed', tasks, async () => {
    mostSeen = Math.max(mostSeen, await countWorkers(fleet));
    return fleet.countCompleted();
  });
  const drainedMs = performance.now() - beganMs;
  await fleet.until('the workers to leave', async () => (await countWorkers(fleet)) === 0);
  const leftMs = performance.now() - beganMs - drainedMs;
  return [
    judged(
      {
        what: 'workers before; most while there is work; in the end',
        measured: `${before}; ${mostSeen}; 0`,
        numbers: { before, mostSeen },
      },
      `0; ${most}; 0`,
      before === 0 && mostSeen === most,
    ),
    judged(
      {
        what: 'completed; after; and the last worker has left after another',
        measured: `${count(tasks)}; ${seconds(drainedMs)}; ${seconds(leftMs)}`,
        numbers: { drainedMs, leftMs },
      },
      count(tasks),
      true,
    ),
  ];
}

async function failingRows(lab: Lab): Promise<Row[]> {
  await using webhook = await startFailingWebhook();
  await using fleet = await Fleet.start(lab.postgresUrl, {
    serveArgs: ['--scale-webhook', webhook.url, ...scaling],
    serveEnv: { SLUICE_SCALE_WEBHOOK_SECRET: 'a secret of the lab' },
  });
  await fleet.submit(steps(tasks, 1));
  await lab.progress.wait('a provisioner that fails', lab.size(failingMs, 8_000));
  const { error } = (await fleet.api().getScaling()).provisioner;
  const calls = webhook.calledAtMs.length;
  await fleet.startWorker({ name: 'by hand', concurrency: 50, module });
  await fleet.untilEmpty();
  const completed = await fleet.countCompleted();
  return [
    judged(
      {
        what: `one that always fails: asked in ${seconds(lab.size(failingMs, 8_000))}, once a second if it had worked; reported as`,
        measured: `${calls}; ${error ?? 'nothing'}`,
        numbers: { calls },
      },
      `2 to ${mostCalls}; an error`,
      calls >= 2 && calls <= mostCalls && error !== null,
    ),
    judged(
      {
        what: 'and completed by a worker that was started by hand',
        measured: count(completed),
        numbers: { completed },
      },
      count(tasks),
      completed === tasks,
    ),
  ];
}

/** Those that are there; who left or died may still be in the list. */
async function countWorkers(fleet: Fleet): Promise<number> {
  const { items } = await fleet.api().listWorkers();
  return items.filter(({ status }) => status !== 'dead').length;
}
