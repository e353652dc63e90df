import { setTimeout as delay } from 'node:timers/promises';
import { AnsweringProxy, html } from '../../../test/support/answering-proxy.js';
import { count, judged, type Row, type Scenario } from '../../shared/scenario.js';
import { Fleet, steps } from '../../workers/fleet.js';
import { runAgain } from '../../workers/run-log.js';

const statuses = [404, 401, 403, 400, 200];

export const foreignAnswers: Scenario = {
  name: 'foreign-answers',
  about:
    'A proxy answers every result with an HTML page for 3 s, with one status after the other, while 300 tasks end',
  run: async (lab) => {
    const rows: Row[] = [];
    for (const status of lab.size(statuses, [404])) {
      rows.push(await round(lab.postgresUrl, status, lab.size(300, 30), lab.size(3_000, 1_000)));
    }
    return rows;
  },
};

async function round(
  postgresUrl: string,
  status: number,
  tasks: number,
  answersForMs: number,
): Promise<Row> {
  await using fleet = await Fleet.start(postgresUrl);
  await using proxy = await AnsweringProxy.start(fleet.url(0));
  for (const name of ['a', 'b']) {
    await fleet.startWorker({ name, concurrency: tasks, args: ['--url', proxy.url] });
  }
  await fleet.submit(steps(tasks, 2 * answersForMs));
  await fleet.until('all to run', () => fleet.notes().length === tasks);
  await fleet.until('the first to end', () => fleet.notes().length > tasks);
  proxy.judge = (path) => (path.endsWith('/result') ? html(status) : null);
  await fleet.submit(steps(tasks, answersForMs / 2));
  await delay(answersForMs);
  proxy.judge = () => null;
  await fleet.untilEmpty();
  const again = runAgain(fleet.notes()).length;
  const completed = await fleet.countCompleted();
  const dead = 2 * tasks - completed;
  return judged(
    {
      what: `${count(2 * tasks)} tasks, results answered ${count(proxy.answered)} times with HTML ${status}: completed; dead letters; run twice`,
      measured: `${count(completed)}; ${dead}; ${again}`,
      numbers: { status, completed, dead, again, answered: proxy.answered },
    },
    `${count(2 * tasks)}; 0; 0`,
    completed === 2 * tasks && dead === 0 && again === 0 && proxy.answered > 0,
  );
}
