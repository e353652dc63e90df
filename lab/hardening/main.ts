// Bad neighbours at full size: npm run hardening -- --help
import { runLab } from '../shared/command.js';
import { confinedKeys } from './scenarios/confined-keys.js';
import { foreignAnswers } from './scenarios/foreign-answers.js';
import { fullDisk } from './scenarios/full-disk.js';
import { hugeAnswers } from './scenarios/huge-answers.js';
import { hungRedis } from './scenarios/hung-redis.js';
import { listeners } from './scenarios/listeners.js';
import { lostKeys } from './scenarios/lost-keys.js';
import { misconfigured } from './scenarios/misconfigured.js';
import { missingPartitions } from './scenarios/missing-partitions.js';
import { postgresFailover } from './scenarios/postgres-failover.js';
import { reshard } from './scenarios/reshard.js';
import { revokedSessions } from './scenarios/revoked-sessions.js';
import { rollingRestarts } from './scenarios/rolling-restarts.js';
import { slowReads } from './scenarios/slow-reads.js';
import { tableLock } from './scenarios/table-lock.js';
import { taskTypes } from './scenarios/task-types.js';

await runLab({
  name: 'hardening',
  title: 'Hardening, measured',
  preface: `What bad neighbours can cause, in real processes at full size: proxies that answer for the server,
locks, full disks, huge answers, expensive reads, hostile names, a Redis that loses keys or hangs. Each
scenario has a small version in \`npm test\`. How each is measured: \`npm run hardening -- --help\` and the
README of the lab.`,
  scenarios: [
    foreignAnswers,
    rollingRestarts,
    tableLock,
    fullDisk,
    revokedSessions,
    confinedKeys,
    hugeAnswers,
    slowReads,
    taskTypes,
    hungRedis,
    lostKeys,
    reshard,
    missingPartitions,
    postgresFailover,
    misconfigured,
    listeners,
  ],
});
