import { setTimeout as delay } from 'node:timers/promises';
import type { Lab } from '../../shared/lab.js';
import { median, spreadOf } from '../../shared/measure.js';
import {
  count,
  judged,
  ms,
  noted,
  percent,
  seconds,
  type Row,
  type Scenario,
} from '../../shared/scenario.js';
import { answersOf, type FloodReport } from '../flood.js';
import { ceiling, OverloadStand, type Phase } from '../overload-stand.js';
import { isAccepted, submitAtOnce } from '../submits.js';

const callers = 64;
const times = 3;
const workUs = 1_000;
const wantedShare = 0.9;
const wantedHealthMs = 100;
const wantedRefusalMs = 100;
const wantedGrowth = 1.15;
const wantedRecoveryMs = 2_000;
/** What waits is done at the peak rate, or nearly. */
const drainAllowance = 1.5;

export const overload: Scenario = {
  name: 'overload',
  about:
    'three times as many submits as the machine can do, whatever they are answered, against ' +
    `${callers} callers who wait when they are refused; tasks that cost their worker 1 ms of CPU, ${count(ceiling)} active at most`,
  run: async (lab) => {
    await using stand = await OverloadStand.open(lab);
    const soakMs = lab.long ? 600_000 : lab.size(60_000, 5_000);
    const whole = await pressed(lab, stand, { workUs, soakMs });
    const recovered = await recovery(stand, whole.peak);
    const bare = await pressed(lab, stand, { workUs: 0, soakMs: lab.size(15_000, 5_000) });
    return [
      arrangementRow(stand),
      ...peakRows(whole),
      throughputRow(whole),
      ...answerRows(whole.over),
      healthRow(whole.over),
      ...boundRows(whole.over),
      ...recoveryRows(recovered),
      bareRow(bare),
    ];
  },
};

interface Pressed {
  readonly before: Phase;
  readonly over: Phase;
  readonly after: Phase;
  readonly peak: number;
}

/** The peak before and after: machines are noisy. */
async function pressed(
  lab: Lab,
  stand: OverloadStand,
  { workUs: work, soakMs }: { readonly workUs: number; readonly soakMs: number },
): Promise<Pressed> {
  const polite = {
    title: `peak, tasks of ${work} µs`,
    load: { clients: callers },
    durationMs: lab.size(12_000, 4_000),
    workUs: work,
  };
  const before = await stand.run(polite);
  const rate = Math.round(times * before.completedPerSecond);
  const over = await stand.run({
    title: `overload, ${rate} a second`,
    load: { rate },
    durationMs: soakMs,
    workUs: work,
  });
  const after = await stand.run(polite);
  return {
    before,
    over,
    after,
    peak: (before.completedPerSecond + after.completedPerSecond) / 2,
  };
}

interface Recovery {
  /** Until a submit is accepted, and what it took. */
  readonly acceptedMs: number;
  readonly latencyMs: number;
  readonly drainedMs: number;
  readonly wantedDrainMs: number;
}

async function recovery(stand: OverloadStand, peak: number): Promise<Recovery> {
  const { fleet } = stand;
  const load = { rate: times * peak };
  const { endedMs: beganMs } = await stand.run({
    title: 'once more',
    load,
    durationMs: 3_000,
    workUs,
  });
  const { acceptedMs, latencyMs } = await untilAccepted(fleet.urls, beganMs);
  await fleet.untilEmpty();
  const drainedMs = performance.now() - beganMs;
  return {
    acceptedMs,
    latencyMs,
    drainedMs,
    wantedDrainMs: (drainAllowance * ceiling * 1000) / peak,
  };
}

async function untilAccepted(urls: readonly string[], beganMs: number) {
  for (;;) {
    const sentMs = performance.now();
    const [answer] = await submitAtOnce(urls, 1, 'high', 0);
    const nowMs = performance.now();
    if (answer !== undefined && isAccepted(answer)) {
      return { acceptedMs: nowMs - beganMs, latencyMs: nowMs - sentMs };
    }
    await delay(20);
  }
}

function arrangementRow({ isApart }: OverloadStand): Row {
  return noted({
    what: 'where they run',
    measured: isApart
      ? 'server and Postgres on cores of their own, the worker on another; the load on a third, or with the worker, which goes first'
      : 'all on all cores: the load takes from what it loads',
    numbers: { isApart: Number(isApart) },
  });
}

function peakRows({ before, after, over }: Pressed): Row[] {
  const cpu = ({ cpu: { server, worker, postgres } }: Phase) =>
    `${percent(server, 0)}, ${percent(worker, 0)}, ${percent(postgres, 0)}`;
  const fewest = spreadOf(
    [before, after].flatMap(({ samples }) => samples.map((s) => s.living)),
  ).least;
  return [
    noted({
      what: 'peak, completed a second: before; after. Fewest active meanwhile',
      measured: `${count(before.completedPerSecond)}; ${count(after.completedPerSecond)}. ${count(fewest)}`,
      numbers: { before: before.completedPerSecond, after: after.completedPerSecond, fewest },
    }),
    noted({
      what: 'of one core, server, worker, Postgres: at the peak; at overload',
      measured: `${cpu(before)}; ${cpu(over)}`,
      numbers: { serverAtPeak: before.cpu.server, serverAtOverload: over.cpu.server },
    }),
  ];
}

function throughputRow({ over, peak }: Pressed): Row {
  const share = over.completedPerSecond / peak;
  return judged(
    {
      what: `completed a second at overload, for ${seconds(over.submits.seconds * 1000)}; of the peak`,
      measured: `${count(over.completedPerSecond)}; ${percent(share)}`,
      numbers: { completedPerSecond: over.completedPerSecond, share },
    },
    `≥ ${percent(wantedShare, 0)}`,
    share >= wantedShare,
  );
}

function answerRows({ submits }: Phase): Row[] {
  const accepted = answersOf(submits, 201);
  const refused = refusalsOf(submits);
  const others = otherAnswers(submits, [201, 429, 503]);
  const wrong = totalOf(others) + submits.withoutRetryAfter;
  const perSecond = (value: number) => count(value / submits.seconds);
  return [
    judged(
      {
        what: 'submits a second: accepted; refused; any other answer, or refused without Retry-After',
        measured: `${perSecond(accepted.count)}; ${perSecond(refused.count)}; ${wrong}${named(others)}`,
        numbers: { accepted: accepted.count, refused: refused.count, ...others },
      },
      '…; …; 0',
      wrong === 0 && refused.count > accepted.count,
    ),
    judged(
      {
        what: 'a refusal takes, from when its request was due: p50; p99',
        measured: `${ms(refused.p50)}; ${ms(refused.p99)}`,
        numbers: { p50: refused.p50, p99: refused.p99 },
      },
      `p99 < ${wantedRefusalMs} ms`,
      refused.p99 < wantedRefusalMs,
    ),
    noted({
      what: 'an accepted submit: p50; p99. Of the load itself: requests sent late by, p99; not sent; of one core',
      measured:
        `${ms(accepted.p50)}; ${ms(accepted.p99)}. ${ms(submits.lateMs)}; ${submits.unsent}; ` +
        percent(submits.cpuShare, 0),
      numbers: {
        p50: accepted.p50,
        p99: accepted.p99,
        late: submits.lateMs,
        unsent: submits.unsent,
      },
    }),
  ];
}

/** 429 of the ceiling and 503 of a server that sheds load: the worse of the two counts. */
function refusalsOf(submits: FloodReport) {
  const [ceilings, shed] = [answersOf(submits, 429), answersOf(submits, 503)];
  return {
    count: ceilings.count + shed.count,
    p50: Math.max(ceilings.p50, shed.p50),
    p99: Math.max(ceilings.p99, shed.p99),
  };
}

/** How many there were of each, by status or by what went wrong with the connection. */
function otherAnswers(
  { answers, unanswered }: FloodReport,
  expected: readonly number[],
): Readonly<Record<string, number>> {
  const counts = Object.entries(answers).map(([what, one]) => [what, one.count] as const);
  const others = counts.filter(([what]) => !expected.includes(Number(what)));
  return Object.fromEntries(unanswered === 0 ? others : [...others, ['unanswered', unanswered]]);
}

function totalOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, one) => sum + one, 0);
}

function named(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).map(([what, times]) => `${what} × ${times}`);
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
}

function healthRow({ health }: Phase): Row {
  const { p50, p99, most, count: answered } = answersOf(health, 200);
  const others = otherAnswers(health, [200]);
  const wrong = totalOf(others);
  return judged(
    {
      what: '/healthz, from a process of its own: p50; p99; most; not answered. How late it was itself, p99',
      measured: `${ms(p50)}; ${ms(p99)}; ${ms(most)}; ${wrong}${named(others)}. ${ms(health.loopDelayMs)}`,
      numbers: { p50, p99, most, ...others, answered },
    },
    `p99 < ${wantedHealthMs} ms`,
    p99 < wantedHealthMs && wrong === 0 && answered > 0,
  );
}

function boundRows({ samples }: Phase): Row[] {
  const living = spreadOf(samples.map((sample) => sample.living)).most;
  const third = Math.floor(samples.length / 3);
  const memory = samples.map(({ serverMb }) => serverMb);
  const [earlier, later] = [
    median(memory.slice(third, 2 * third)),
    median(memory.slice(2 * third)),
  ];
  return [
    judged(
      {
        what: 'memory of the server, MB: median of the second third; of the last; most',
        measured: `${count(earlier)}; ${count(later)}; ${count(spreadOf(memory).most)}`,
        numbers: { earlier, later },
      },
      `≤ ${wantedGrowth} of it`,
      later <= wantedGrowth * earlier,
    ),
    judged(
      {
        what: 'most active tasks, once a second',
        measured: count(living),
        numbers: { living },
      },
      `≤ ${count(ceiling)}`,
      living <= ceiling,
    ),
  ];
}

function recoveryRows({ acceptedMs, latencyMs, drainedMs, wantedDrainMs }: Recovery): Row[] {
  return [
    judged(
      {
        what: 'when the load ends: until a submit is accepted; which took',
        measured: `${ms(acceptedMs)}; ${ms(latencyMs)}`,
        numbers: { acceptedMs, latencyMs },
      },
      `≤ ${seconds(wantedRecoveryMs)}`,
      acceptedMs <= wantedRecoveryMs,
    ),
    judged(
      {
        what: 'until nothing waits any more',
        measured: seconds(drainedMs),
        numbers: { drainedMs },
      },
      `≤ ${seconds(wantedDrainMs)}`,
      drainedMs <= wantedDrainMs,
    ),
  ];
}

/** A refusal then costs as much as the work of a task, nearly: nothing is wanted of it. */
function bareRow({ over, peak }: Pressed): Row {
  const { p99 } = answersOf(over.health, 200);
  return noted({
    what: 'the same with tasks that do nothing: peak; at overload; share; p99 of /healthz',
    measured:
      `${count(peak)}; ${count(over.completedPerSecond)}; ` +
      `${percent(over.completedPerSecond / peak)}; ${ms(p99)}`,
    numbers: { peak, completedPerSecond: over.completedPerSecond, p99 },
  });
}
