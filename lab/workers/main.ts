// What workers hold to, in real processes: npm run workers -- --help
import { runLab } from '../shared/command.js';
import { cancel } from './scenarios/cancel.js';
import { frozen } from './scenarios/frozen.js';
import { inFlight } from './scenarios/in-flight.js';
import { kill } from './scenarios/kill.js';
import { memory } from './scenarios/memory.js';
import { outage } from './scenarios/outage.js';
import { sharing } from './scenarios/sharing.js';
import { sigterm } from './scenarios/sigterm.js';
import { workflowKills } from './scenarios/workflow-kills.js';
import { workflowParallel } from './scenarios/workflow-parallel.js';

await runLab({
  name: 'workers',
  title: 'Workers, measured',
  preface: `What workers hold to in real processes: \`sluice serve\` and \`sluice worker\`, Postgres (durable)
and, where there are two servers, Redis, all on one machine. Order, overlap and counts of runs go by what
the handlers themselves wrote down, in one file that all of them append to. How each is measured:
\`npm run workers -- --help\` and the README of the lab.`,
  scenarios: [
    workflowKills,
    workflowParallel,
    inFlight,
    sharing,
    kill,
    frozen,
    sigterm,
    outage,
    cancel,
    memory,
  ],
});
