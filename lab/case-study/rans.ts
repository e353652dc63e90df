import type { CaseClock } from './case-clock.js';
import type { Call } from './model-server.js';
import type { Arrival, Ran } from './work.js';

/** What the models wrote down and when the answers were there, in the time of the case. */
export function ransOf(
  arrivals: readonly Arrival[],
  calls: readonly Call[],
  answeredAt: ReadonlyMap<number, number>,
  clock: CaseClock,
): readonly Ran[] {
  // An answer that was lost is given again: the last one counts.
  const answers = new Map(
    calls.filter(({ status }) => status === 200).map((call) => [call.task, call]),
  );
  return arrivals.map(({ task, model, arrivedMs }) => {
    const call = answers.get(task);
    const at = answeredAt.get(task);
    if (call === undefined || at === undefined) throw new Error(`Task ${task} was not answered`);
    return {
      task,
      model,
      arrivedMs,
      startedMs: clock.caseMs(call.startedAt),
      endedMs: clock.caseMs(call.endedAt ?? at),
      answeredMs: clock.caseMs(at),
    };
  });
}

/** Calls that gave nobody an answer: refused, broken off, or answered and lost with their sub-batch. */
export function countWasted(calls: readonly Call[], tasks: number): number {
  return calls.length - tasks;
}
