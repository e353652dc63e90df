import type { Lab } from '../../../lab/shared/lab.js';
import { count, type Scenario } from '../../../lab/shared/scenario.js';
import { compareCases } from '../compare-cases.js';
import type { Case } from '../stand.js';

export const queues: Scenario = {
  name: 'queues',
  about: 'as many tasks over 10, 1,000 and 10,000 queues',
  run: async (lab) => [
    ...(await compareCases(lab, 'memory', casesOf(lab))),
    ...(await compareCases(lab, 'redis', casesOf(lab))),
  ],
};

function casesOf(lab: Lab): readonly Case[] {
  const round = lab.size({ tasks: 20_000, polls: 1_000 }, { tasks: 1_000, polls: 50 });
  const waiting = lab.size(20_000, 2_000);
  return lab.size([10, 1_000, 10_000], [10, 100, 1_000]).map((number) => ({
    title: `${count(number)} queues`,
    waiting,
    queues: number,
    round: { kind: 'steady', ...round },
  }));
}
