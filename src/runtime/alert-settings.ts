import {
  oneOf,
  optional,
  secondsAsMs,
  setting,
  text,
  webAddress,
  whole,
  type Setting,
} from './setting.js';
import { isWebhookSecret, webhookSecretForm } from './webhook-secret.js';

const formats = ['standard', 'slack'] as const;

/** How alerts are evaluated, and who is told of them. */
export interface AlertConfig {
  /** 0: they are not evaluated here. */
  readonly intervalMs: number;
  readonly webhook: {
    readonly url: string;
    readonly secret: string | null;
    readonly format: (typeof formats)[number];
  } | null;
}

export const alertSettings = {
  alertIntervalMs: setting(
    '--alert-interval-seconds',
    ['SLUICE_ALERT_INTERVAL_MS'],
    whole(0, 3_600_000),
    10_000,
    'how often the alert rules are evaluated; 0: never',
    secondsAsMs(0, 3_600_000),
  ),
  alertWebhook: setting(
    '--alert-webhook',
    ['SLUICE_ALERT_WEBHOOK'],
    optional(webAddress),
    null,
    'post to this address when an alert fires and when it is over',
  ),
  alertWebhookSecret: setting(
    '--alert-webhook-secret',
    ['SLUICE_ALERT_WEBHOOK_SECRET'],
    optional(text),
    null,
    'what these posts are signed with, whsec_…; better in the variable',
  ),
  alertWebhookFormat: setting(
    '--alert-webhook-format',
    ['SLUICE_ALERT_WEBHOOK_FORMAT'],
    oneOf(formats),
    'standard',
    'how these posts are written: standard (Standard Webhooks) or slack',
  ),
} as const;

type Name = keyof typeof alertSettings;
type GivenAlerts = {
  readonly [Each in Name]: (typeof alertSettings)[Each] extends Setting<infer Value>
    ? Value
    : never;
};

export function readAlertSettings(
  read: <Value>(name: Name, one: Setting<Value>) => Value,
): GivenAlerts {
  return {
    alertIntervalMs: read('alertIntervalMs', alertSettings.alertIntervalMs),
    alertWebhook: read('alertWebhook', alertSettings.alertWebhook),
    alertWebhookSecret: read('alertWebhookSecret', alertSettings.alertWebhookSecret),
    alertWebhookFormat: read('alertWebhookFormat', alertSettings.alertWebhookFormat),
  };
}

export function alertConflicts(given: GivenAlerts): string[] {
  const { alertIntervalMs, alertWebhook, alertWebhookSecret, alertWebhookFormat } = given;
  const found: string[] = [];
  if (alertWebhook === null) {
    if (alertWebhookSecret !== null) found.push('alertWebhookSecret needs alertWebhook.');
    return found;
  }
  if (alertIntervalMs === 0) {
    found.push('alertWebhook needs alerts that are evaluated: alertIntervalMs is 0.');
  }
  if (hasCredentials(alertWebhook)) {
    found.push('alertWebhook must not hold a user name or a password: posts are signed instead.');
  }
  if (alertWebhookSecret === null && alertWebhookFormat === 'standard') {
    found.push(`alertWebhook needs SLUICE_ALERT_WEBHOOK_SECRET: ${webhookSecretForm}`);
  }
  if (alertWebhookSecret !== null && !isWebhookSecret(alertWebhookSecret)) {
    found.push(`alertWebhookSecret must be ${webhookSecretForm}`);
  }
  return found;
}

function hasCredentials(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { username, password } = new URL(url);
  return username !== '' || password !== '';
}

export function alertConfig(given: GivenAlerts): AlertConfig {
  const { alertIntervalMs, alertWebhook: url, alertWebhookSecret: secret } = given;
  const format = given.alertWebhookFormat;
  return { intervalMs: alertIntervalMs, webhook: url === null ? null : { url, secret, format } };
}

/** For people to read. Only the host of the address: the path of a Slack webhook is a secret. */
export function describeAlerts({ intervalMs, webhook }: AlertConfig): Record<string, string> {
  if (intervalMs === 0) return { alerts: 'not evaluated here' };
  const told = webhook === null ? '' : `, told to ${new URL(webhook.url).host} (${webhook.format})`;
  return { alerts: `every ${intervalMs / 1000} s${told}` };
}
