import { count, judged, noted, seconds, type Row, type Scenario } from '../../shared/scenario.js';
import { Fleet, steps } from '../fleet.js';

const each = 100;
const drainSeconds = 4;

export const sigterm: Scenario = {
  name: 'sigterm',
  about: 'SIGTERM to a worker that runs 100 tasks of 1.5 s and 100 of a minute, and may take 4 s',
  run: async (lab) => {
    await using fleet = await Fleet.start(lab.postgresUrl);
    return rowsOf(await terminate(fleet));
  },
};

export interface Terminated {
  readonly exitCode: number | null;
  readonly tookMs: number;
  /** Running when the signal was sent. */
  readonly running: number;
  readonly shortCompleted: number;
  readonly longReleased: number;
  readonly mostRetries: number;
}

export async function terminate(fleet: Fleet): Promise<Terminated> {
  const worker = await fleet.startWorker({
    name: 'one',
    concurrency: 2 * each,
    args: ['--drain-timeout', String(drainSeconds)],
  });
  await fleet.submit([...steps(each, 1_500, 'short'), ...steps(each, 60_000, 'long')]);
  const begun = () => fleet.notes().filter(({ what }) => what === 'began');
  await fleet.until('all to run', () => begun().length >= 2 * each);
  const running = 2 * each - fleet.notes().filter(({ what }) => what === 'ended').length;
  const beganMs = performance.now();
  const { code } = await worker.process.terminate();
  const tookMs = performance.now() - beganMs;
  const [found] = await fleet.database.query<Omit<Terminated, 'exitCode' | 'tookMs' | 'running'>>(`
    with every_task as (
      select queue, status, retry_count, past_attempts from sluice.tasks
      union all select queue, status, retry_count, past_attempts from sluice.task_history
    )
    select
      count(*) filter (where queue = 'short' and status = 'completed')::integer as "shortCompleted",
      count(*) filter (where queue = 'long' and status in ('pending', 'queued')
        and past_attempts[1]->>'outcome' = 'released')::integer as "longReleased",
      max(retry_count) as "mostRetries"
    from every_task`);
  if (found === undefined) throw new Error('There are no tasks');
  return { exitCode: code, tookMs, running, ...found };
}

function rowsOf(run: Terminated): Row[] {
  const { exitCode, tookMs, running, shortCompleted, longReleased, mostRetries } = run;
  return [
    judged(
      {
        what: 'running at the signal; short ones completed; long ones given back',
        measured: `${running}; ${shortCompleted}; ${longReleased}`,
        numbers: { running, shortCompleted, longReleased },
      },
      `${2 * each}; ${each}; ${each}`,
      running === 2 * each && shortCompleted === each && longReleased === each,
    ),
    judged(
      {
        what: 'most retries that a task has used',
        measured: count(mostRetries),
        numbers: { mostRetries },
      },
      '0',
      mostRetries === 0,
    ),
    judged(
      { what: 'exit code', measured: String(exitCode), numbers: { exitCode: exitCode ?? -1 } },
      '0',
      exitCode === 0,
    ),
    noted({ what: 'from the signal to the exit', measured: seconds(tookMs), numbers: { tookMs } }),
  ];
}
