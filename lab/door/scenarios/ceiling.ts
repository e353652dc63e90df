import { setTimeout as delay } from 'node:timers/promises';
import { count, judged, type Row, type Scenario } from '../../shared/scenario.js';
import { Fleet } from '../../workers/fleet.js';
import { mostAtOnce } from '../../workers/run-log.js';
import { countOf, isAccepted, isRefused, submitAtOnce, type Answer } from '../submits.js';

const ceiling = 15;
const callers = 100;
const workers = ['a', 'b', 'c'];
const stepMs = 100;
const waitMs = 1_000;

export const ceilingScenario: Scenario = {
  name: 'ceiling',
  about: `${callers} simultaneous submits of high priority over two servers, ${ceiling} active tasks at most, three workers of one slot`,
  run: async (lab) => {
    await using fleet = await Fleet.start(lab.postgresUrl, {
      servers: 2,
      ready: 'redis',
      serveArgs: ['--max-active', String(ceiling)],
    });
    const bursts = [await burst(fleet)];
    await delay(waitMs);
    const waiting = { living: await fleet.countLiving(), began: fleet.notes().length };
    await fleet.startWorkers(
      workers.map((name, index) => ({ name, concurrency: 1, at: index % fleet.urls.length })),
    );
    await fleet.untilEmpty();
    for (let round = 2; round <= lab.size(20, 3); round += 1) {
      bursts.push(await burst(fleet));
      await fleet.untilEmpty();
    }
    return [
      ...burstRows(bursts),
      waitingRow(waiting),
      ranRow(mostAtOnce(fleet.notes()), await fleet.countCompleted(), bursts),
    ];
  },
};

function burst(fleet: Fleet): Promise<Answer[]> {
  return submitAtOnce(fleet.urls, callers, 'high', stepMs);
}

function burstRows(bursts: readonly (readonly Answer[])[]): Row[] {
  const accepted = bursts.map((answers) => countOf(answers, isAccepted));
  const refused = bursts.map((answers) => countOf(answers, isRefused));
  const [least, most] = [Math.min(...accepted), Math.max(...accepted)];
  const refusals = bursts.flat().filter(isRefused);
  const retryAfter = refusals.map((answer) => answer.retryAfter ?? 0);
  return [
    judged(
      {
        what: `accepted of ${callers}, the least and the most of ${bursts.length} bursts, each into an empty system`,
        measured: `${least}; ${most}`,
        numbers: { least, most, bursts: bursts.length },
      },
      `${ceiling}; ${ceiling}`,
      least === ceiling && most === ceiling,
    ),
    judged(
      {
        what: 'refused with 429 and Retry-After, the least of all bursts; Retry-After',
        measured: `${Math.min(...refused)}; ${Math.min(...retryAfter)} to ${Math.max(...retryAfter)} s`,
        numbers: { leastRefused: Math.min(...refused), leastRetryAfter: Math.min(...retryAfter) },
      },
      `${callers - ceiling}; ≥ 1 s`,
      Math.min(...refused) === callers - ceiling,
    ),
  ];
}

function waitingRow({ living, began }: { living: number; began: number }): Row {
  return judged(
    {
      what: 'waiting a second later, with no worker; begun',
      measured: `${living}; ${began}`,
      numbers: { living, began },
    },
    `${ceiling}; 0`,
    living === ceiling && began === 0,
  );
}

function ranRow(atOnce: number, completed: number, bursts: readonly unknown[]): Row {
  const wanted = ceiling * bursts.length;
  return judged(
    {
      what: 'with three workers of one slot: most at once; completed of all bursts',
      measured: `${atOnce}; ${count(completed)}`,
      numbers: { atOnce, completed, wanted },
    },
    `≤ ${workers.length}; ${count(wanted)}`,
    atOnce <= workers.length && completed === wanted,
  );
}
