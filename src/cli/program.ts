import { createRequire } from 'node:module';
import { Command } from 'commander';
import { alertsCommand } from './commands/alerts.js';
import { auditCommand } from './commands/audit.js';
import { benchCommand } from './commands/bench.js';
import { cancelCommand } from './commands/cancel.js';
import { demoCommand } from './commands/demo.js';
import { dlqCommand } from './commands/dlq.js';
import { doctorCommand } from './commands/doctor.js';
import { keysCommand } from './commands/keys.js';
import { labCommand } from './commands/lab.js';
import { limitCommand } from './commands/limit.js';
import { limitsCommand } from './commands/limits.js';
import { migrateCommand } from './commands/migrate.js';
import { pauseCommand, resumeCommand } from './commands/pause.js';
import { queuesCommand } from './commands/queues.js';
import { serveCommand } from './commands/serve.js';
import { submitCommand } from './commands/submit.js';
import { taskCommand } from './commands/task.js';
import { taskTypesCommand } from './commands/task-types.js';
import { tasksCommand } from './commands/tasks.js';
import { topCommand } from './commands/top.js';
import { workerCommand } from './commands/worker.js';
import { workersCommand } from './commands/workers.js';

const { version, description } = createRequire(import.meta.url)('../../package.json') as {
  version: string;
  description: string;
};

export function buildProgram(): Command {
  const program = new Command('sluice')
    .description(description)
    .version(version)
    .showHelpAfterError('(add --help for what is possible)')
    .exitOverride();
  serveCommand(program);
  workerCommand(program);
  submitCommand(program);
  taskCommand(program);
  cancelCommand(program);
  tasksCommand(program);
  taskTypesCommand(program);
  topCommand(program);
  queuesCommand(program);
  limitCommand(program);
  limitsCommand(program);
  pauseCommand(program);
  resumeCommand(program);
  dlqCommand(program);
  workersCommand(program);
  alertsCommand(program);
  keysCommand(program);
  auditCommand(program);
  migrateCommand(program);
  doctorCommand(program);
  demoCommand(program);
  labCommand(program);
  benchCommand(program);
  return program;
}
