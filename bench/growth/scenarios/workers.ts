import type { Lab } from '../../../lab/shared/lab.js';
import { count, type Scenario } from '../../../lab/shared/scenario.js';
import { compareCases } from '../compare-cases.js';
import type { Case } from '../stand.js';

export const workers: Scenario = {
  name: 'workers',
  about: '1, 10 and 100 workers with 50 slots that poll at once',
  run: async (lab) => [
    ...(await compareCases(lab, 'memory', casesOf(lab))),
    ...(await compareCases(lab, 'redis', casesOf(lab))),
  ],
};

function casesOf(lab: Lab): readonly Case[] {
  const round = lab.size({ tasks: 20_000, samples: 500 }, { tasks: 1_000, samples: 20 });
  return [1, 10, 100].map((number) => ({
    title: number === 1 ? '1 worker' : `${count(number)} workers`,
    waiting: 0,
    queues: 1,
    round: { kind: 'crowd', workers: number, ...round },
  }));
}
