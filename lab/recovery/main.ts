// What dies and comes back, in real processes: npm run recovery -- --help
import { runLab } from '../shared/command.js';
import { killedWorker } from './scenarios/killed-worker.js';
import { longOutages } from './scenarios/long-outages.js';
import { poisonedTask } from './scenarios/poisoned-task.js';
import { postgresAway } from './scenarios/postgres-away.js';
import { serviceAway } from './scenarios/service-away.js';

await runLab({
  name: 'recovery',
  title: 'Recovery, measured',
  preface: `What is lost and what it costs when something dies or goes away: \`sluice serve\` and \`sluice worker\`
as processes, Postgres (durable), all on one machine. What ran goes by what the handlers and the service
that they call wrote down, what became of it by the rows in Postgres. How each is measured:
\`npm run recovery -- --help\` and the README of the lab.`,
  scenarios: [killedWorker, postgresAway, longOutages, serviceAway, poisonedTask],
});
