import { scalingConflicts, type ScalingSettings } from '../domain/scaling.js';
import { hidePassword } from './hide-password.js';
import {
  names,
  optional,
  secondsAsMs,
  setting,
  text,
  webAddress,
  whole,
  type Setting,
} from './setting.js';

/** How many workers there should be, and who is asked for them. */
export interface ScaleConfig {
  readonly settings: ScalingSettings;
  readonly provisioner:
    | { readonly kind: 'none' }
    | { readonly kind: 'process'; readonly module: string }
    | { readonly kind: 'webhook'; readonly url: string; readonly secret: string };
}

export const scaleSettings = {
  scaleMin: setting(
    '--scale-min',
    ['SLUICE_SCALE_MIN'],
    whole(0, 10_000),
    0,
    'how few workers may be asked for',
  ),
  scaleMax: setting(
    '--scale-max',
    ['SLUICE_SCALE_MAX'],
    whole(0, 10_000),
    10,
    'how many workers may be asked for',
  ),
  scaleConcurrency: setting(
    '--scale-concurrency',
    ['SLUICE_SCALE_CONCURRENCY'],
    whole(1, 100_000),
    1_000,
    'tasks at once of one worker that is asked for',
  ),
  scaleIntervalMs: setting(
    '--scale-interval-seconds',
    ['SLUICE_SCALE_INTERVAL_MS'],
    whole(100, 3_600_000),
    5_000,
    'how often it is looked how many workers are wanted',
    secondsAsMs(100, 3_600_000),
  ),
  scaleQuietMs: setting(
    '--scale-quiet-seconds',
    ['SLUICE_SCALE_QUIET_MS'],
    whole(0, 86_400_000),
    60_000,
    'for how long fewer must be enough before fewer are asked for',
    secondsAsMs(0, 86_400_000),
  ),
  scaleQueues: setting(
    '--scale-queues',
    ['SLUICE_SCALE_QUEUES'],
    optional(names),
    null,
    'queues of the workers that are asked for (every queue)',
  ),
  scaleTaskTypes: setting(
    '--scale-task-types',
    ['SLUICE_SCALE_TASK_TYPES'],
    optional(names),
    null,
    'task types of the workers that are asked for (every type, or those of the module)',
  ),
  scaleCapabilities: setting(
    '--scale-capabilities',
    ['SLUICE_SCALE_CAPABILITIES'],
    optional(names),
    null,
    'capabilities of the workers that are asked for (any; with a module: none)',
  ),
  scaleModule: setting(
    '--scale-module',
    ['SLUICE_SCALE_MODULE'],
    optional(text),
    null,
    'start workers as processes of this machine, with this module',
  ),
  scaleWebhook: setting(
    '--scale-webhook',
    ['SLUICE_SCALE_WEBHOOK'],
    optional(webAddress),
    null,
    'post to this address how many workers are wanted',
  ),
  scaleWebhookSecret: setting(
    null,
    ['SLUICE_SCALE_WEBHOOK_SECRET'],
    optional(text),
    null,
    'what these posts are signed with',
  ),
} as const;

type Name = keyof typeof scaleSettings;
type GivenScale = {
  readonly [Each in Name]: (typeof scaleSettings)[Each] extends Setting<infer Value>
    ? Value
    : never;
};

export function readScaleSettings(
  read: <Value>(name: Name, one: Setting<Value>) => Value,
): GivenScale {
  return {
    scaleMin: read('scaleMin', scaleSettings.scaleMin),
    scaleMax: read('scaleMax', scaleSettings.scaleMax),
    scaleConcurrency: read('scaleConcurrency', scaleSettings.scaleConcurrency),
    scaleIntervalMs: read('scaleIntervalMs', scaleSettings.scaleIntervalMs),
    scaleQuietMs: read('scaleQuietMs', scaleSettings.scaleQuietMs),
    scaleQueues: read('scaleQueues', scaleSettings.scaleQueues),
    scaleTaskTypes: read('scaleTaskTypes', scaleSettings.scaleTaskTypes),
    scaleCapabilities: read('scaleCapabilities', scaleSettings.scaleCapabilities),
    scaleModule: read('scaleModule', scaleSettings.scaleModule),
    scaleWebhook: read('scaleWebhook', scaleSettings.scaleWebhook),
    scaleWebhookSecret: read('scaleWebhookSecret', scaleSettings.scaleWebhookSecret),
  };
}

const leastSecretLength = 16;

export function scaleConflicts(given: GivenScale): string[] {
  const { scaleModule, scaleWebhook, scaleWebhookSecret: secret } = given;
  const found = scalingConflicts({ min: given.scaleMin, max: given.scaleMax });
  if (scaleModule !== null && scaleWebhook !== null) {
    found.push('scaleModule and scaleWebhook exclude each other: one of them starts workers.');
  }
  if (scaleWebhook !== null && (secret === null || secret.length < leastSecretLength)) {
    found.push(
      `scaleWebhook needs SLUICE_SCALE_WEBHOOK_SECRET, ${leastSecretLength} characters or more: ` +
        'whoever is asked has to know by whom.',
    );
  }
  return found;
}

export function scaleConfig(given: GivenScale): ScaleConfig {
  const { scaleModule, scaleCapabilities } = given;
  return {
    settings: {
      min: given.scaleMin,
      max: given.scaleMax,
      concurrency: given.scaleConcurrency,
      intervalMs: given.scaleIntervalMs,
      quietMs: given.scaleQuietMs,
      offer: {
        queues: given.scaleQueues,
        taskTypes: given.scaleTaskTypes,
        // What is started here has no others; what a webhook starts is not known.
        capabilities: scaleCapabilities ?? (scaleModule === null ? null : []),
      },
    },
    provisioner: provisionerOf(given),
  };
}

function provisionerOf(given: GivenScale): ScaleConfig['provisioner'] {
  const { scaleModule: module, scaleWebhook: url, scaleWebhookSecret: secret } = given;
  if (module !== null) return { kind: 'process', module };
  if (url !== null && secret !== null) return { kind: 'webhook', url, secret };
  return { kind: 'none' };
}

/** For people to read: nothing in it is secret. */
export function describeScaling({ settings, provisioner }: ScaleConfig): Record<string, string> {
  if (provisioner.kind === 'none') return {};
  const { min, max, concurrency } = settings;
  const by =
    provisioner.kind === 'process'
      ? `processes of ${provisioner.module}`
      : hidePassword(provisioner.url);
  return { workers: `${min} to ${max}, each ${concurrency} tasks at once, by ${by}` };
}
