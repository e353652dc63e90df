import type { AlertRule } from './rule.js';
import { deadLetterRules } from './dead-letter-rules.js';
import { failureRules } from './failure-rules.js';
import { waitingRules } from './waiting-rules.js';
import { workerRules } from './worker-rules.js';

/**
 * Every alert. The evaluation in the server, the API, webhooks, the rule file of Prometheus and docs/alerts.md come from
 * this table.
 */
export const alertRules = {
  ...waitingRules,
  ...failureRules,
  ...deadLetterRules,
  ...workerRules,
} as const satisfies Record<string, AlertRule>;

export type AlertName = keyof typeof alertRules;

export const alertNames = Object.keys(alertRules) as readonly AlertName[];

export function isAlertName(name: string): name is AlertName {
  return Object.hasOwn(alertRules, name);
}

/** Widened: a rule of the table is plain or labelled. */
export function ruleOf(name: AlertName): AlertRule {
  return alertRules[name];
}

export function runbookOf(name: AlertName): string {
  return `docs/alerts.md#${name}`;
}
