import type { Command } from 'commander';
import { alertSettings } from '../runtime/alert-settings.js';

/** How often alerts are evaluated, and who is told. */
export function withAlertOptions(command: Command): Command {
  return command
    .option('--alert-interval-seconds <seconds>', `${alertSettings.alertIntervalMs.meaning} (10)`)
    .option('--alert-webhook <url>', alertSettings.alertWebhook.meaning)
    .option('--alert-webhook-secret <secret>', alertSettings.alertWebhookSecret.meaning)
    .option('--alert-webhook-format <format>', alertSettings.alertWebhookFormat.meaning);
}
