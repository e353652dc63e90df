import type { Priority } from '../../../src/domain/priority.js';
import { judged, type Row, type Scenario } from '../../shared/scenario.js';
import { Fleet } from '../../workers/fleet.js';
import { countOf, isAccepted, isRefused, submitAtOnce, type Answer } from '../submits.js';

const ceiling = 100;
const callers = 150;
/** From so many active tasks on each is refused. */
const refusedFrom = { low: 80, medium: 90, high: 100 } as const;
/** Nothing is to end meanwhile. */
const stepMs = 0;

export const priorities: Scenario = {
  name: 'priorities',
  about: `${ceiling} active tasks at most, no worker; ${callers} simultaneous submits over two servers of low, then of medium, then of high priority`,
  run: async (lab) => {
    await using fleet = await Fleet.start(lab.postgresUrl, {
      servers: 2,
      ready: 'redis',
      serveArgs: ['--max-active', String(ceiling)],
    });
    const rows: Row[] = [];
    let active = 0;
    for (const priority of ['low', 'medium', 'high'] as const) {
      const answers = await submitAtOnce(fleet.urls, callers, priority, stepMs);
      active += countOf(answers, isAccepted);
      rows.push(rowOf(priority, answers, active));
    }
    const late = await Promise.all(
      (['low', 'medium', 'high'] as const).map((priority) =>
        submitAtOnce(fleet.urls, 2, priority, stepMs),
      ),
    );
    return [...rows, lateRow(late.flat())];
  },
};

function rowOf(priority: Priority, answers: readonly Answer[], active: number): Row {
  const refused = countOf(answers, isRefused);
  const accepted = countOf(answers, isAccepted);
  return judged(
    {
      what: `${priority}: accepted; refused; active then`,
      measured: `${accepted}; ${refused}; ${active}`,
      numbers: { accepted, refused, active },
    },
    `refused from ${refusedFrom[priority]}`,
    active === refusedFrom[priority] && accepted + refused === callers,
  );
}

function lateRow(answers: readonly Answer[]): Row {
  const refused = countOf(answers, isRefused);
  return judged(
    {
      what: `of ${answers.length} more of all priorities, refused`,
      measured: String(refused),
      numbers: { refused },
    },
    String(answers.length),
    refused === answers.length,
  );
}
