import { count, type Scenario } from '../../../lab/shared/scenario.js';
import { compareCases } from '../compare-cases.js';

/** Ten million need about 5 GB of disk, and some minutes to make. */
export const ended: Scenario = {
  name: 'ended',
  about: 'beside no, a million and ten million tasks that ended in the six days before',
  run: (lab) => {
    const round = lab.size({ tasks: 20_000, polls: 1_000 }, { tasks: 1_000, polls: 50 });
    const numbers = lab.size([0, 1_000_000, 10_000_000], [0, 10_000, 20_000]);
    return compareCases(
      lab,
      'memory',
      numbers.map((number) => ({
        title: `${count(number)} ended`,
        waiting: 1_000,
        queues: 1,
        ended: number,
        round: { kind: 'steady', ...round },
      })),
    );
  },
};
