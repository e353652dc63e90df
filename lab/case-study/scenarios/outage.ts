import { count, noted, seconds, type Row } from '../../shared/scenario.js';
import { drawArrivals } from '../arrivals.js';
import type { CaseScenario } from '../case.js';
import type { Shade } from '../charts/backlog.js';
import { backlogOf, measure } from '../measures.js';
import { countWasted } from '../rans.js';
import { capacityOf, runStreams, type Stream } from '../streams.js';

/** Of what the batch system can do. */
const load = 0.6;
const calmSeconds = 60;
const awaySeconds = 60;
const afterSeconds = 120;
const everyMs = 1_000;

export const outage: CaseScenario = {
  name: 'outage',
  about: `the models answer 503 for ${awaySeconds} s, also to what is under way; in real time at any scale`,
  run: async (one) => {
    // How long Sluice waits before it tries such a service again is no setting, and so no part of the scale.
    const timeScale = 1;
    const perSecond = load * capacityOf(one);
    const lengthSeconds = calmSeconds + awaySeconds + afterSeconds;
    const arrivals = drawArrivals(one.seed, [{ seconds: lengthSeconds, perSecond }]);
    const { batch, sluice } = await runStreams(one, arrivals, {
      title: 'outage',
      timeScale,
      meanwhile: async (models, clock) => {
        await clock.until(calmSeconds * 1_000);
        await Promise.all(models.map((each) => each.goAway()));
        await clock.until((calmSeconds + awaySeconds) * 1_000);
        await Promise.all(models.map((each) => each.comeBack()));
      },
    });
    return {
      rows: [...rowsOf('batch', batch), ...rowsOf('Sluice', sluice)],
      runs: [batch, sluice],
    };
  },
};

/** For the chart: when what was the case. */
export function outageShades(lastMs: number): readonly Shade[] {
  const fromMs = calmSeconds * 1_000;
  return [
    { fromMs, toMs: fromMs + awaySeconds * 1_000, label: 'the models answer 503' },
    { fromMs: lastMs, toMs: Infinity, label: 'nothing arrives any more' },
  ];
}

function rowsOf(who: string, { rans, calls }: Stream): Row[] {
  const wasted = countWasted(calls, rans.length);
  const backlog = backlogOf(rans, everyMs);
  const before = Math.max(
    ...backlog.filter(({ atMs }) => atMs <= calmSeconds * 1_000).map((level) => level.count),
  );
  const backMs = (calmSeconds + awaySeconds) * 1_000;
  const calm = backlog.find(({ atMs, count: left }) => atMs >= backMs && left <= before);
  const recoveredMs = (calm?.atMs ?? 0) - backMs;
  const { answerMs } = measure(rans);
  return [
    noted({
      what: `${who}: calls made in vain; for each task`,
      measured: `${count(wasted)}; ${(wasted / rans.length).toFixed(2)}`,
      numbers: { wasted, tasks: rans.length },
    }),
    noted({
      what: `${who}: as few waited as before, so long after the models were back; p50, p99 until the answer`,
      measured: `${seconds(recoveredMs, 0)}; ${seconds(answerMs.p50)}, ${seconds(answerMs.p99)}`,
      numbers: { recoveredMs, answerP50Ms: answerMs.p50, answerP99Ms: answerMs.p99 },
    }),
  ];
}
