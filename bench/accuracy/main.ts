// How exactly limits are kept and used: sluice bench accuracy --help
import { runLab } from '../../lab/shared/command.js';
import { manyQueues } from './scenarios/many-queues.js';
import { rates } from './scenarios/rates.js';
import { tokens } from './scenarios/tokens.js';

await runLab({
  name: 'accuracy',
  command: 'sluice bench accuracy',
  title: 'Accuracy of limits, measured',
  preface: `How exactly limits are kept, and how much of them is used, in real processes: servers, workers, Postgres
(durable), Redis and a stand-in for the service that tasks call, all on one machine. Counts at the claim go
by the clock of Postgres, counts at the service by its own log. Both come a little later than the grant, by
different amounts; a window is shorter than the limit's by the jitter that was measured. How each is
measured: [benchmarks](benchmarks.md#accuracy).`,
  scenarios: [rates, manyQueues, tokens],
});
