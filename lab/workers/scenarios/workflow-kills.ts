import { count, judged, noted, seconds, type Row, type Scenario } from '../../shared/scenario.js';
import { Fleet, steps, type FleetWorker } from '../fleet.js';
import { mostAtOnce, orderOf, type Note } from '../run-log.js';

const length = 10;
const stepMs = 300;
/** Of the last two: whoever notices late that they began still meets them. */
const lastStepMs = 1_500;
/** The first task after every second one. */
const killedAt = [2, 4, 6, 8];

export const workflowKills: Scenario = {
  name: 'workflow-kills',
  about:
    'a workflow of 10 tasks over 3 worker processes; after every second task the one that runs it is killed',
  run: async (lab) => {
    await using fleet = await Fleet.start(lab.postgresUrl, {
      heartbeatIntervalMs: 1_000,
      leaseMs: 3_000,
    });
    return rowsOf(await runKilledWorkflow(fleet));
  },
};

export interface KilledWorkflow {
  readonly taskIds: readonly string[];
  readonly order: readonly string[];
  readonly mostAtOnce: number;
  readonly completed: number;
  /** Kills that a task did not survive. */
  readonly interrupted: number;
  readonly tookMs: number;
}

export async function runKilledWorkflow(fleet: Fleet): Promise<KilledWorkflow> {
  const workers = new Map<string, FleetWorker>();
  const start = async (name: string) => {
    workers.set(name, await fleet.startWorker({ name, concurrency: 5 }));
  };
  await Promise.all(['a', 'b', 'c'].map(start));
  const workflowId = 'ten-in-order';
  const taskIds = await fleet.submit(
    [...steps(length - 2, stepMs), ...steps(2, lastStepMs)].map((step) => ({
      ...step,
      workflowId,
    })),
  );
  const deaths = new Map<string, number>();
  for (const index of killedAt) {
    // They may have got further by now, and begun in one that was killed before.
    const rest: readonly string[] = taskIds.slice(index);
    const { worker } = await fleet.note(
      `task ${index} to begin`,
      ({ what, taskId, worker: name }) =>
        what === 'began' && rest.includes(taskId) && !deaths.has(name),
    );
    await workers.get(worker)?.process.kill();
    deaths.set(worker, Date.now());
    await start(`${worker}-${index}`);
  }
  await fleet.untilEmpty();
  const notes = fleet.notes();
  const completed = await fleet.countCompleted();
  return {
    taskIds,
    order: orderOf(notes),
    mostAtOnce: mostAtOnce(notes, deaths),
    completed,
    interrupted: countOf(notes, 'began') - countOf(notes, 'ended'),
    tookMs: (notes.at(-1)?.at ?? 0) - (notes[0]?.at ?? 0),
  };
}

function countOf(notes: readonly Note[], what: Note['what']): number {
  return notes.filter((note) => note.what === what).length;
}

function rowsOf(run: KilledWorkflow): Row[] {
  const { taskIds, order, completed, interrupted, tookMs } = run;
  const isInOrder = order.length === length && order.every((id, index) => id === taskIds[index]);
  return [
    judged(
      {
        what: 'tasks as they began, by the log of the handlers; completed',
        measured: `${isInOrder ? 'in order' : 'not in order'}; ${count(completed)}`,
        numbers: { isInOrder: Number(isInOrder), completed },
      },
      `in order; ${length}`,
      isInOrder && completed === length,
    ),
    judged(
      { what: 'most at once', measured: count(run.mostAtOnce), numbers: { most: run.mostAtOnce } },
      '1',
      run.mostAtOnce === 1,
    ),
    noted({
      what: 'SIGKILLs; tasks that one of them cut short; all in all, with leases of 3 s',
      measured: `${killedAt.length}; ${interrupted}; ${seconds(tookMs)}`,
      numbers: { kills: killedAt.length, interrupted, tookMs },
    }),
  ];
}
