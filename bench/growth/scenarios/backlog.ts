import type { Lab } from '../../../lab/shared/lab.js';
import { count, type Scenario } from '../../../lab/shared/scenario.js';
import { compareCases } from '../compare-cases.js';
import type { Case } from '../stand.js';

export const backlog: Scenario = {
  name: 'backlog',
  about: 'a queue in which 1,000, 100,000 and a million tasks wait',
  run: async (lab) => [
    ...(await compareCases(lab, 'memory', casesOf(lab))),
    ...(await compareCases(lab, 'redis', casesOf(lab))),
  ],
};

function casesOf(lab: Lab): readonly Case[] {
  const round = lab.size({ tasks: 20_000, polls: 1_000 }, { tasks: 1_000, polls: 50 });
  return lab.size([1_000, 100_000, 1_000_000], [1_000, 12_000, 20_000]).map((waiting) => ({
    title: `${count(waiting)} waiting`,
    waiting,
    queues: 1,
    round: { kind: 'steady', ...round },
  }));
}
