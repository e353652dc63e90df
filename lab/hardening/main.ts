// Bad neighbours at full size: npm run hardening -- --help
import { runLab } from '../shared/command.js';
import { foreignAnswers } from './scenarios/foreign-answers.js';
import { missingPartitions } from './scenarios/missing-partitions.js';
import { rollingRestarts } from './scenarios/rolling-restarts.js';
import { revokedSessions } from './scenarios/revoked-sessions.js';
import { taskTypes } from './scenarios/task-types.js';

await runLab({
  name: 'hardening',
  title: 'Hardening, measured',
  preface: `What bad neighbours can cause, in real processes at full size: proxies that answer for the server,
locks, full disks, huge answers, expensive reads, hostile names, a Redis that loses keys or hangs. Each
scenario has a small version in \`npm test\`. How each is measured: \`npm run hardening -- --help\` and the
README of the lab.`,
  scenarios: [foreignAnswers, rollingRestarts, revokedSessions, missingPartitions, taskTypes],
});
