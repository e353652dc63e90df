import type { Command } from 'commander';
import { taskSettings as settings } from '../runtime/task-settings.js';

/** The settings of what tasks get that do not say it themselves. */
export function withTaskOptions(command: Command): Command {
  return command
    .option('--max-retries <numbers>', `${settings.maxRetries.meaning} (high=5,medium=3,low=2)`)
    .option(
      '--timeout-seconds <numbers>',
      `${settings.timeoutSeconds.meaning} (high=300,medium=600,low=900)`,
    )
    .option(
      '--max-backoff-seconds <numbers>',
      `${settings.maxBackoffSeconds.meaning} (high=10,medium=30,low=60)`,
    )
    .option('--max-retries-by-error <limits>', settings.maxRetriesByError.meaning)
    .option('--dispatch-deadline-seconds <seconds>', settings.dispatchDeadlineSeconds.meaning)
    .option('--assignment-timeout-seconds <seconds>', settings.assignmentTimeoutMs.meaning);
}
