import { goal, type Case, type CaseScenario } from '../case.js';
import { CaseClock } from '../case-clock.js';
import { callsRow, durationOf, durationRow, seedsRow, timesRow } from '../rows.js';
import { simulateSlots } from '../simulate-slots.js';
import { SluiceStand } from '../sluice-stand.js';
import { atOnce, drawWork, type Ran } from '../work.js';
import { noted, percent, seconds, type Row } from '../../shared/scenario.js';

const tolerance = 0.03;

export const sluice: CaseScenario = {
  name: 'sluice',
  about: 'Sluice with 8 worker processes of 50 slots, no limit',
  run: async (one) => {
    const { postgresUrl, seed, tasks, timeScale, fleet } = one;
    const arrivals = atOnce(drawWork(seed, tasks));
    await using stand = await SluiceStand.start({ postgresUrl, ...fleet });
    const clock = new CaseClock(timeScale);
    const [{ rans }] = await Promise.all([
      stand.run(arrivals, clock),
      one.progress.until('sluice', tasks, () => stand.models.countDone()),
    ]);
    const calls = await stand.models.log();
    return {
      rows: [
        ...rowsOf(one, rans, simulateSlots(arrivals, slotsOf(one))),
        callsRow(calls.length, tasks),
      ],
      runs: [{ title: 'sluice', rans }],
    };
  },
};

function rowsOf(one: Case, rans: readonly Ran[], ideal: readonly Ran[]): Row[] {
  const startUpMs = startUpOf(rans);
  const slots = slotsOf(one);
  const ratio = (durationOf(rans) - startUpMs) / durationOf(ideal);
  return [
    durationRow(rans),
    goal(
      one,
      {
        what: `without the start-up, compared with an ideal of ${slots} slots`,
        measured: `${percent(ratio - 1)} longer than ${seconds(durationOf(ideal))}`,
        numbers: { ratio, idealMs: durationOf(ideal) },
      },
      `within ${percent(tolerance, 0)}`,
      ratio <= 1 + tolerance,
    ),
    startUpRow(rans, startUpMs, slots),
    timesRow(rans),
    seedsRow(one.tasks, (work) => durationOf(simulateSlots(atOnce(work), slots))),
  ];
}

function slotsOf({ fleet }: Case): number {
  return fleet.workers * fleet.slots;
}

/** From the call of submit until a model was called for the first time. */
function startUpOf(rans: readonly Ran[]): number {
  return Math.min(...rans.map(({ startedMs }) => startedMs));
}

function startUpRow(rans: readonly Ran[], startUpMs: number, slots: number): Row {
  const starts = rans.map(({ startedMs }) => startedMs).toSorted((a, b) => a - b);
  const fullMs = starts[Math.min(slots, starts.length) - 1] ?? 0;
  return noted({
    what: 'start-up: from submit to the first call; until every slot had one',
    measured: `${seconds(startUpMs, 2)}; ${seconds(fullMs, 2)}`,
    numbers: { startUpMs, fullMs },
  });
}
