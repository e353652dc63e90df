import { count, noted, seconds, type Row } from '../../shared/scenario.js';
import { drawArrivals } from '../arrivals.js';
import { publishedShape } from '../batch-plan.js';
import type { Case, CaseScenario } from '../case.js';
import type { Shade } from '../charts/backlog.js';
import { backlogOf, measure, type Level } from '../measures.js';
import { simulateBatch } from '../simulate-batch.js';
import { capacityOf, runStreams } from '../streams.js';
import type { Ran } from '../work.js';

/** Of what the batch system can do, and for how long, with 1,000 tasks to the case. */
const normal = 0.6;
const tooMuch = 1.2;
const calmSeconds = 60;
const burstSeconds = 240;
const afterSeconds = 420;
const everyMs = 1_000;

export const spiral: CaseScenario = {
  name: 'spiral',
  about: `the death spiral: arrivals at 120 % of what the batch system can do for ${burstSeconds / 60} minutes, 60 % before and after`,
  run: async (one) => {
    const phases = phasesOf(one);
    const arrivals = drawArrivals(one.seed, phases);
    const { timeScale } = one;
    const { batch, sluice } = await runStreams(one, arrivals, { title: 'spiral', timeScale });
    const [calm, burst, after] = phases.map((phase) => phase.seconds * 1_000);
    const span: Span = { calmMs: calm ?? 0, burstMs: burst ?? 0, afterMs: after ?? 0 };
    const simulated = simulateBatch(arrivals, publishedShape);
    return {
      rows: [
        noted({
          what: 'what the batch system can do; tasks that arrived',
          measured: `${capacityOf(one).toFixed(1)} a second; ${count(arrivals.length)}`,
          numbers: { capacity: capacityOf(one), tasks: arrivals.length },
        }),
        ...rowsOf('batch', batch.rans, span),
        simulatedRow(batch.rans, simulated),
        ...rowsOf('Sluice', sluice.rans, span),
      ],
      runs: [batch, sluice],
    };
  },
};

/** For the chart: when what was the case. */
export function spiralShades(lastMs: number): readonly Shade[] {
  const whole = calmSeconds + burstSeconds + afterSeconds;
  const at = (seconds: number) => (seconds / whole) * lastMs;
  return [
    {
      fromMs: at(calmSeconds),
      toMs: at(calmSeconds + burstSeconds),
      label: 'arrivals at 120 % of batch capacity',
    },
    { fromMs: lastMs, toMs: Infinity, label: 'nothing arrives any more' },
  ];
}

interface Span {
  readonly calmMs: number;
  readonly burstMs: number;
  readonly afterMs: number;
}

function phasesOf(one: Case) {
  const capacity = capacityOf(one);
  const length = one.tasks / 1_000;
  return [
    { seconds: calmSeconds * length, perSecond: normal * capacity },
    { seconds: burstSeconds * length, perSecond: tooMuch * capacity },
    { seconds: afterSeconds * length, perSecond: normal * capacity },
  ];
}

function rowsOf(who: string, rans: readonly Ran[], { calmMs, burstMs, afterMs }: Span): Row[] {
  const backlog = backlogOf(rans, everyMs);
  const burstEndMs = calmMs + burstMs;
  const endMs = burstEndMs + afterMs;
  const before = mostOf(backlog, 0, calmMs);
  const most = mostOf(backlog, 0, Infinity);
  const atEnd = mostOf(backlog, endMs - everyMs, endMs);
  const calm = backlog.find(({ atMs, count: left }) => atMs >= burstEndMs && left <= before);
  const calmAgainMs = (calm?.atMs ?? Infinity) - burstEndMs;
  const { answerMs } = measure(rans);
  return [
    noted({
      what: `${who}: backlog before; at most; ${seconds(afterMs, 0)} after the burst`,
      measured: `${count(before)}; ${count(most)}; ${count(atEnd)}`,
      numbers: { before, most, atEnd },
    }),
    noted({
      what: `${who}: as before again so long after the burst; p50 and p99 until the answer was there`,
      measured: `${whenCalm(calmAgainMs, afterMs)}; ${seconds(answerMs.p50)}, ${seconds(answerMs.p99)}`,
      numbers: { calmAgainMs, answerP50Ms: answerMs.p50, answerP99Ms: answerMs.p99 },
    }),
  ];
}

function whenCalm(calmAgainMs: number, afterMs: number): string {
  return calmAgainMs <= afterMs ? seconds(calmAgainMs, 0) : 'only when nothing arrived any more';
}

function simulatedRow(rans: readonly Ran[], simulated: readonly Ran[]): Row {
  const most = mostOf(backlogOf(simulated, everyMs), 0, Infinity);
  const { durationMs } = measure(simulated);
  return noted({
    what: 'batch: a simulation of it has at most; ends after, and this one',
    measured: `${count(most)}; ${seconds(durationMs, 0)}, ${seconds(measure(rans).durationMs, 0)}`,
    numbers: { simulatedMost: most, simulatedMs: durationMs },
  });
}

function mostOf(backlog: readonly Level[], fromMs: number, toMs: number): number {
  const counted = backlog.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs);
  return Math.max(0, ...counted.map((level) => level.count));
}
