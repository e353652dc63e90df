import type { Command } from 'commander';
import { scaleSettings } from '../runtime/scale-settings.js';

/** Flags of `sluice serve` that say how many workers are asked for, and whom. */
export function withScaleOptions(command: Command): Command {
  return command
    .option('--scale-module <file>', scaleSettings.scaleModule.meaning)
    .option('--scale-webhook <url>', scaleSettings.scaleWebhook.meaning)
    .option('--scale-min <workers>', `${scaleSettings.scaleMin.meaning} (0)`)
    .option('--scale-max <workers>', `${scaleSettings.scaleMax.meaning} (10)`)
    .option('--scale-concurrency <tasks>', `${scaleSettings.scaleConcurrency.meaning} (1000)`)
    .option('--scale-interval-seconds <seconds>', `${scaleSettings.scaleIntervalMs.meaning} (5)`)
    .option('--scale-quiet-seconds <seconds>', `${scaleSettings.scaleQuietMs.meaning} (60)`)
    .option('--scale-queues <names>', scaleSettings.scaleQueues.meaning)
    .option('--scale-task-types <names>', scaleSettings.scaleTaskTypes.meaning)
    .option('--scale-capabilities <names>', scaleSettings.scaleCapabilities.meaning);
}
