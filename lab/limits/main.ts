// What the limits hold to, in real processes: npm run limits -- --help
import { runLab } from '../shared/command.js';
import { change } from './scenarios/change.js';
import { concurrency } from './scenarios/concurrency.js';
import { drain } from './scenarios/drain.js';
import { flush } from './scenarios/flush.js';
import { neighbour } from './scenarios/neighbour.js';

await runLab({
  name: 'limits',
  title: 'Limits, measured',
  preface: `What the limits hold to in real processes: servers, workers, Postgres (durable), Redis and a stand-in
for the service that tasks call, all on one machine. How each is measured: \`npm run limits -- --help\`
and the README of the lab. Counts at the claim go by the clock of Postgres, counts at the service by its
own log. Both come a little later than the grant, by different amounts; a window is shorter than the
limit's by the jitter that was measured.`,
  scenarios: [concurrency, change, neighbour, flush, drain],
});
