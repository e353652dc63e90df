import { judged, noted, seconds, type Row, type Scenario } from '../../shared/scenario.js';
import { Fleet, steps } from '../fleet.js';

const settings = { heartbeatIntervalMs: 700, leaseMs: 3_000 };
const longMs = 60_000;

export const frozen: Scenario = {
  name: 'frozen',
  about: 'a worker that is stopped for longer than its lease of 3 s (SIGSTOP), and then continued',
  run: async (lab) => {
    await using fleet = await Fleet.start(lab.postgresUrl, settings);
    return rowsOf(await freeze(fleet, 1_200));
  },
};

export interface Frozen {
  /** What the frozen worker logged of the result that it sent too late. */
  readonly refusals: readonly string[];
  /** Why its other handler was stopped. */
  readonly stoppedWhy: string | undefined;
  readonly stoppedAfterMs: number;
  /** Of both tasks: the result, and `worker outcome` of each attempt. */
  readonly tasks: readonly { readonly result: unknown; readonly attempts: readonly string[] }[];
}

/**
 * Two tasks begin in it: one takes `lateMs`, which are over when it is continued and before it would
 * notice that its leases are lost; the other would still go on.
 */
export async function freeze(fleet: Fleet, lateMs: number): Promise<Frozen> {
  const cold = await fleet.startWorker({ name: 'frozen', concurrency: 2 });
  const taskIds = await fleet.submit([...steps(1, lateMs), ...steps(1, longMs)]);
  const [late = '', long = ''] = taskIds;
  await fleet.until('both to begin', () => fleet.notes().length === 2);
  cold.process.signal('SIGSTOP');
  const env = { WORKER_SLOWNESS: '0.001' };
  await fleet.startWorker({ name: 'other', concurrency: 2, env });
  await fleet.untilEmpty();
  cold.process.signal('SIGCONT');
  const continuedAt = Date.now();

  const stopped = await fleet.note(
    'the handler to be stopped',
    ({ what, taskId, worker }) => what === 'stopped' && taskId === long && worker === 'frozen',
  );
  const refusals = await fleet.until('the late result to be refused', () => {
    const lines = cold.process.errors.filter((line) =>
      line.includes('lease was lost before its result'),
    );
    return lines.some((line) => line.includes(late)) && lines;
  });
  const nameOf = (workerId: string) => (workerId === cold.id ? 'frozen' : 'other');
  const tasks = await Promise.all(
    taskIds.map(async (taskId) => {
      const { result, history } = await fleet.task(taskId);
      const attempts = (history?.attempts ?? []).map(
        ({ workerId, outcome }) => `${nameOf(workerId)} ${outcome}`,
      );
      return { result, attempts };
    }),
  );
  return {
    refusals,
    stoppedWhy: stopped.why,
    stoppedAfterMs: stopped.at - continuedAt,
    tasks,
  };
}

function rowsOf({ refusals, stoppedWhy, stoppedAfterMs, tasks }: Frozen): Row[] {
  const results = tasks.map(({ result }) => String(result));
  const attempts = tasks.map((task) => task.attempts.join(', '));
  return [
    judged(
      {
        what: 'late results that were refused (lease_lost), by its log',
        measured: String(refusals.length),
        numbers: { refusals: refusals.length },
      },
      '1',
      refusals.length === 1,
    ),
    judged(
      {
        what: 'whose results the two tasks have; attempts of each',
        measured: [results.join(', '), ...attempts].join('; '),
        numbers: {},
      },
      "the other's; frozen lapsed, other succeeded",
      results.every((result) => result === 'other') &&
        attempts.every((all) => all === 'frozen lapsed, other succeeded'),
    ),
    judged(
      {
        what: 'why the handler that still ran was stopped',
        measured: stoppedWhy ?? 'it was not',
        numbers: {},
      },
      'lease_lost',
      stoppedWhy === 'lease_lost',
    ),
    noted({
      what: 'from the SIGCONT to that',
      measured: seconds(stoppedAfterMs),
      numbers: { stoppedAfterMs },
    }),
  ];
}
