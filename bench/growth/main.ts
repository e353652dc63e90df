// Whether it stays as fast and as small as it is: sluice bench growth --help
import { runLab } from '../../lab/shared/command.js';
import { backlog } from './scenarios/backlog.js';
import { ended } from './scenarios/ended.js';
import { queues } from './scenarios/queues.js';
import { soak } from './scenarios/soak.js';
import { takes } from './scenarios/takes.js';
import { workers } from './scenarios/workers.js';

await runLab({
  name: 'growth',
  command: 'sluice bench growth',
  title: 'Growth, measured',
  preface: `Whether it stays as fast and as small as it is: each row compares a large case with the small one of its
kind. The goal is within 10 %. Cases run side by side, each in a process and a database of its own on one
durable Postgres, round after round by turns; a ratio is taken within a round, and the median of all rounds
counts. In parentheses the least and the most of all rounds. How each is measured:
[benchmarks](benchmarks.md#growth).`,
  scenarios: [backlog, queues, takes, ended, workers, soak],
  numbers: {
    rounds: { about: 'rounds; in each one every case runs once', whole: 7, quick: 2 },
    'soak-minutes': { about: 'how long the soak takes', whole: 60, quick: 1 },
  },
});
