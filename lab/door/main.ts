// What the door holds to, in real processes: npm run door -- --help
import { runLab } from '../shared/command.js';
import { ceilingScenario } from './scenarios/ceiling.js';
import { keys } from './scenarios/keys.js';
import { overload } from './scenarios/overload.js';
import { priorities } from './scenarios/priorities.js';
import { provisioner } from './scenarios/provisioner.js';

await runLab({
  name: 'door',
  title: 'The door, measured',
  preface: `What is refused, how, and what it costs those who were let in, in real processes: \`sluice serve\`
and \`sluice worker\`, Postgres (durable) and, where there are two servers, Redis, all on one machine. How
each is measured: \`npm run door -- --help\` and the README of the lab.`,
  scenarios: [ceilingScenario, priorities, overload, provisioner, keys],
  long: 'the overload lasts ten minutes',
});
