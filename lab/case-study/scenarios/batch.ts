import { publishedShape } from '../batch-plan.js';
import { BatchSystem } from '../batch-system.js';
import { goal, type Case, type CaseScenario } from '../case.js';
import { CaseClock } from '../case-clock.js';
import { ModelServer } from '../model-server.js';
import { simulateBatch } from '../simulate-batch.js';
import { callsRow, durationOf, durationRow, seedsRow, timesRow } from '../rows.js';
import { atOnce, drawWork, type Arrival, type Ran } from '../work.js';
import { percent, seconds, type Row } from '../../shared/scenario.js';

const tolerance = 0.05;

export const batch: CaseScenario = {
  name: 'batch',
  about:
    'what people had: 20 parts, sub-batches of 10, each answered when its slowest call is done',
  run: async (one) => {
    const arrivals = atOnce(drawWork(one.seed, one.tasks));
    await using models = await ModelServer.start();
    const system = new BatchSystem(models, publishedShape, new CaseClock(one.timeScale));
    const [rans] = await Promise.all([
      system.run(arrivals),
      one.progress.until('batch', one.tasks, async () => system.answeredAt.size),
    ]);
    const calls = await models.log();
    return {
      rows: [...rowsOf(one, rans, simulate(arrivals)), callsRow(calls.length, one.tasks)],
      runs: [{ title: 'batch', rans }],
    };
  },
};

function simulate(arrivals: readonly Arrival[]): readonly Ran[] {
  return simulateBatch(arrivals, publishedShape);
}

function rowsOf(one: Case, rans: readonly Ran[], simulated: readonly Ran[]): Row[] {
  const ratio = durationOf(rans) / durationOf(simulated);
  return [
    durationRow(rans),
    goal(
      one,
      {
        what: 'compared with a simulation of itself',
        measured: `${percent(ratio - 1)} longer than ${seconds(durationOf(simulated))}`,
        numbers: { ratio, simulatedMs: durationOf(simulated) },
      },
      `within ${percent(tolerance, 0)}`,
      Math.abs(ratio - 1) <= tolerance,
    ),
    timesRow(rans),
    seedsRow(one.tasks, (work) => durationOf(simulate(atOnce(work)))),
  ];
}
