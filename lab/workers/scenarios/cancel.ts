import { spreadOf } from '../../shared/measure.js';
import { judged, ms, type Row, type Scenario } from '../../shared/scenario.js';
import { Fleet, steps } from '../fleet.js';

const wantedMs = 1_000;

export const cancel: Scenario = {
  name: 'cancel',
  about: 'a task cancelled at server A while its handler runs in a worker at server B, with Redis',
  run: async (lab) => {
    await using fleet = await Fleet.start(lab.postgresUrl, { servers: 2, ready: 'redis' });
    const rounds = lab.size(50, 5);
    await fleet.startWorker({ name: 'roomy', concurrency: 10, at: 1, args: ['--queues', 'roomy'] });
    await fleet.startWorker({ name: 'full', concurrency: 1, at: 1, args: ['--queues', 'full'] });
    return [
      rowOf('by a worker with free slots', await cancelEach(fleet, 'roomy', rounds)),
      rowOf('by a worker whose only slot it takes', await cancelEach(fleet, 'full', rounds)),
    ];
  },
};

/** From sending the cancel to the signal in the handler; why, where it was something else. */
async function cancelEach(fleet: Fleet, queue: string, rounds: number): Promise<number[]> {
  const took: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const [taskId] = await fleet.submit(steps(1, 60_000, queue));
    if (taskId === undefined) throw new Error('Nothing was submitted');
    await fleet.note('it to begin', (note) => note.taskId === taskId && note.what === 'began');
    const sentAt = Date.now();
    await fleet.api(0).cancelTask(taskId);
    const isStop = (note: { taskId: string; what: string }) =>
      note.taskId === taskId && note.what === 'stopped';
    const { at, why } = await fleet.note('it to stop', isStop);
    if (why !== 'cancelled') throw new Error(`It was stopped: ${String(why)}`);
    took.push(at - sentAt);
  }
  return took;
}

function rowOf(how: string, took: readonly number[]): Row {
  const { median, p99, most } = spreadOf(took);
  return judged(
    {
      what: `from the cancel being sent to the handler's signal, run ${how}: median; most`,
      measured: `${ms(median)}; ${ms(most)} of ${took.length}`,
      numbers: { median, p99, most, rounds: took.length },
    },
    `≤ ${wantedMs} ms`,
    most <= wantedMs,
  );
}
