import { jitterOf, mostInWindow, shareUsed } from '../../shared/measure.js';
import { count, ms, noted, percent, seconds, type Row } from '../../shared/scenario.js';
import { Probe } from '../../limits/probe.js';
import { goal, type Case, type CaseScenario } from '../case.js';
import { CaseClock } from '../case-clock.js';
import type { Call } from '../model-server.js';
import { callsRow, durationRow, timesRow } from '../rows.js';
import { SluiceStand } from '../sluice-stand.js';
import { atOnce, drawWork, models } from '../work.js';

const perMinute = 20;
const minuteMs = 60_000;
const leastShare = 0.995;
/** The tokens that a full bucket begins with are gone by then. */
const warmUpMs = 1_000;

export const limited: CaseScenario = {
  name: 'limited',
  about: `the same with a limit of ${perMinute} a minute for each of the ${models.length} models`,
  run: async (one) => {
    const { postgresUrl, seed, tasks, timeScale, fleet } = one;
    const arrivals = atOnce(drawWork(seed, tasks));
    await using stand = await SluiceStand.start({ postgresUrl, ...fleet });
    // The minute goes faster, and the number stays: what a bucket holds is part of what is measured.
    await stand.limitEach(perMinute, 60 / timeScale);
    const probe = new Probe([stand.url]);
    const clock = new CaseClock(timeScale);
    const [{ rans, claimedAt }] = await Promise.all([
      stand.run(arrivals, clock),
      one.progress.until('limited', tasks, () => stand.models.countDone()),
    ]);
    const { least, most } = await probe.stop();
    const calls = await stand.models.log();
    const seen = look(calls, claimedAt, clock, most - least);
    return {
      rows: [
        durationRow(rans),
        ...rowsOf(one, seen),
        timesRow(rans),
        callsRow(calls.length, tasks),
      ],
      runs: [{ title: 'limited', rans }],
    };
  },
};

/** Times are of the case, but for the jitter. */
interface Seen {
  /** By model. */
  readonly starts: readonly (readonly number[])[];
  readonly claims: readonly (readonly number[])[];
  readonly jitterMs: number;
  readonly timeScale: number;
}

/** From the grant to the claim is what `GET /readyz` takes; from the claim to the call is seen. */
function look(
  calls: readonly Call[],
  claimedAt: ReadonlyMap<number, number>,
  clock: CaseClock,
  grantJitterMs: number,
): Seen {
  const claimOf = ({ task }: Call) => claimedAt.get(task) ?? 0;
  const byModel = (at: (call: Call) => number) =>
    models.map((model) => {
      const own = calls.filter((call) => call.model === model);
      return own.map((call) => clock.caseMs(at(call))).sort((a, b) => a - b);
    });
  const delays = calls.map((call) => call.startedAt - claimOf(call));
  return {
    starts: byModel(({ startedAt }) => startedAt),
    claims: byModel(claimOf),
    jitterMs: grantJitterMs + jitterOf(delays),
    timeScale: clock.timeScale,
  };
}

function rowsOf(one: Case, { starts, claims, jitterMs, timeScale }: Seen): Row[] {
  const mostIn = (windowMs: number) =>
    Math.max(...starts.map((times) => mostInWindow(times, windowMs)));
  const windowMs = Math.max(0, minuteMs - jitterMs * timeScale);
  const most = mostIn(windowMs);
  const whole = mostIn(minuteMs);
  const shares = claims.map((times) => shareUsed(times, perMinute / minuteMs, warmUpMs));
  const least = Math.min(...shares);
  const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
  return [
    goal(
      one,
      {
        what: `most calls of any model in a minute less the jitter (any ${seconds(windowMs, 2)})`,
        measured: count(most),
        numbers: { most, windowMs },
      },
      `≤ ${perMinute}`,
      most <= perMinute,
    ),
    noted({
      what: 'jitter from grant to call; most in any whole minute by the log of the models',
      measured: `${ms(jitterMs)}; ${count(whole)}`,
      numbers: { jitterMs, whole },
    }),
    goal(
      one,
      {
        what: 'share of the allowed rate that was used: by the least of the models; on average',
        measured: `${percent(least, 2)}; ${percent(mean, 2)}`,
        numbers: { leastShare: least, meanShare: mean },
      },
      `≥ ${percent(leastShare)}`,
      least >= leastShare,
    ),
  ];
}
