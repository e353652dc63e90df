import { join } from 'node:path';
import { startModelProvider } from '../../stand-in/model-provider.js';
import { spreadOf } from '../../shared/measure.js';
import { count, judged, percent, type Row, type Scenario } from '../../shared/scenario.js';
import { Fleet } from '../../workers/fleet.js';

const tasks = 120;
const slots = 10;
const answerMs = 500;
/** As OpenAI answers a request that is larger than what it allows in a minute. */
const refused = { status: 429, code: 'rate_limit_exceeded', type: 'tokens' };

export const poisonedTask: Scenario = {
  name: 'poisoned-task',
  about:
    'one of 120 tasks is answered 429 every time, by a stand-in for OpenAI that its SDK calls; 10 at once in 2 workers and 2 servers',
  run: async (lab) => {
    await using provider = await startModelProvider({ answerMs });
    await using fleet = await Fleet.start(lab.postgresUrl, { servers: 2, ready: 'redis' });
    const env = { SERVICE_URL: provider.url };
    const module = join(import.meta.dirname, '../tasks.mjs');
    const concurrency = slots / 2;
    await fleet.startWorkers(
      ['a', 'b'].map((name, at) => ({ name, concurrency, at, env, module })),
    );
    const rounds = lab.size(5, 1);
    const ratios: number[] = [];
    let refusals = 0;
    await runBatch(fleet, 'warm-up', false);
    for (let round = 0; round < rounds; round += 1) {
      const without = await runBatch(fleet, `without-${round}`, false);
      const before = provider.counts[429] ?? 0;
      ratios.push((await runBatch(fleet, `with-${round}`, true)) / without);
      await untilDead(fleet, `with-${round}`);
      refusals = (provider.counts[429] ?? 0) - before;
    }
    return rowsOf(ratios, refusals);
  },
};

/** How long it takes until all but the poisoned one are done. */
async function runBatch(fleet: Fleet, queue: string, isPoisoned: boolean): Promise<number> {
  const drafts = Array.from({ length: tasks }, (_, index) => {
    const isRefused = isPoisoned && index === 0;
    return { taskType: 'complete', queue, parameters: isRefused ? refused : { status: 200 } };
  });
  const begunMs = performance.now();
  await fleet.submit(drafts);
  const wanted = isPoisoned ? tasks - 1 : tasks;
  await fleet.until('all others to be done', async () => {
    const [row] = await fleet.database.query<{ done: number }>(
      `select count(*)::integer as done from sluice.task_history where queue = '${queue}'`,
    );
    return row?.done === wanted;
  });
  return performance.now() - begunMs;
}

async function untilDead(fleet: Fleet, queue: string): Promise<void> {
  await fleet.until('it to be a dead letter', async () => {
    const rows = await fleet.database.query(
      `select from sluice.tasks where queue = '${queue}' and status = 'dead_letter'`,
    );
    return rows.length === 1;
  });
}

function rowsOf(ratios: readonly number[], refusals: number): Row[] {
  const { median } = spreadOf(ratios);
  return [
    judged(
      {
        what: 'time of the others, against the same without it (median of the rounds)',
        measured: percent(median),
        numbers: { ratios },
      },
      '≤ 110 %',
      median <= 1.1,
    ),
    judged(
      { what: 'calls until it is a dead letter', measured: count(refusals), numbers: { refusals } },
      '≤ 10 (three at no cost, one, three retries)',
      refusals >= 7 && refusals <= 10,
    ),
  ];
}
