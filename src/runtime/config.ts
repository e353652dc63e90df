import { ceilingFaults, type Threshold } from '../domain/admission.js';
import { assignmentConflicts, serverConflicts } from '../domain/setting-conflicts.js';
import { submissionLimitText, type SubmissionLimit } from '../domain/submission-limit.js';
import type { TaskPolicy } from '../domain/task-policy.js';
import {
  alertConfig,
  alertConflicts,
  alertSettings,
  describeAlerts,
  readAlertSettings,
  type AlertConfig,
} from './alert-settings.js';
import { hidePassword } from './hide-password.js';
import {
  defaultTransitionMode,
  logFormats,
  logLevels,
  transitionModes,
  type LogFormat,
  type TransitionMode,
} from './log-format.js';
import {
  describeScaling,
  readScaleSettings,
  scaleConfig,
  scaleConflicts,
  scaleSettings,
  type ScaleConfig,
} from './scale-settings.js';
import {
  networks,
  oneOf,
  optional,
  origins,
  postgresUrl,
  redisUrl,
  secondsAsMs,
  maxActiveTasks,
  setting,
  submissionLimits,
  text,
  threshold,
  whole,
  yesOrNo,
  type Setting,
} from './setting.js';
import { readTaskSettings, taskConfig, taskSettingFaults, taskSettings } from './task-settings.js';

/** Values by setting, as a source names them: text from a shell, anything from a file. */
export type Values = Readonly<Record<string, unknown>>;

export interface ConfigSources {
  /** By setting. */
  readonly flags: Values;
  /** By variable. */
  readonly env: Values;
  /** By setting; null: there is no file. */
  readonly file: { readonly path: string; readonly values: Values } | null;
}

export interface ServeConfig {
  readonly host: string;
  readonly port: number;
  readonly database:
    | { readonly kind: 'pglite'; readonly dataDir?: string }
    | { readonly kind: 'postgres'; readonly url: string; readonly poolSize?: number };
  /** Null: the ready queue is in memory, and one process serves at a time. */
  readonly redisUrl: string | null;
  /** False: refuse to start when another process serves, instead of standing by. */
  readonly heartbeatIntervalMs: number;
  readonly leaseMs: number;
  readonly wakeOrder: 'spread' | 'concentrate';
  readonly retainEndedDays: number;
  readonly retainDeadLettersDays: number;
  readonly auditDays: number;
  readonly maxScheduleDays: number;
  readonly maxActive: number;
  readonly maxActiveMedium: Threshold;
  readonly maxActiveLow: Threshold;
  /** Empty: any number of tasks. */
  readonly submitLimitPerKey: readonly SubmissionLimit[];
  readonly submitLimitPerUser: readonly SubmissionLimit[];
  readonly tasks: TaskPolicy;
  /** Null: it follows from the heartbeats. */
  readonly assignmentTimeoutMs: number | null;
  readonly scaling: ScaleConfig;
  readonly alerts: AlertConfig;
  /** Shown as a badge in the dashboard; null: none. */
  readonly environment: string | null;
  /** Whose pages may call. */
  readonly corsOrigins: readonly string[];
  /** Whether `/metrics` needs no key. */
  readonly openMetrics: boolean;
  /** Who is believed where a call comes from. */
  readonly trustProxy: readonly string[];
  readonly maxConnections: number;
  readonly drainMs: number;
  readonly logLevel: string;
  /** Null: by whether stderr is a terminal. */
  readonly logFormat: LogFormat | null;
  readonly logTransitions: TransitionMode;
  readonly logPayloads: boolean;
}

export type CheckedConfig =
  | { readonly kind: 'valid'; readonly config: ServeConfig }
  | { readonly kind: 'invalid'; readonly problems: readonly string[] };

export const memoryDataDir = ':memory:';

const wakeOrders = ['spread', 'concentrate'] as const;

/** Every setting of a server. The docs and the checks come from this table. */
export const serveSettings = {
  host: setting('--host', ['SLUICE_HOST'], text, '127.0.0.1', 'where to listen'),
  port: setting('--port', ['SLUICE_PORT'], whole(0, 65_535), 7700, '0 takes any free port'),
  data: setting(
    '--data',
    ['SLUICE_DATA'],
    optional(text),
    null,
    `folder of the embedded database (.sluice), or ${memoryDataDir}`,
  ),
  databaseUrl: setting(
    '--database-url',
    ['SLUICE_DATABASE_URL', 'DATABASE_URL'],
    optional(postgresUrl),
    null,
    'a Postgres server instead of the embedded database',
  ),
  poolSize: setting(
    null,
    ['SLUICE_POOL_SIZE'],
    optional(whole(1, 1_000)),
    null,
    'connections to Postgres at most',
  ),
  redisUrl: setting(
    '--redis-url',
    ['SLUICE_REDIS_URL', 'REDIS_URL'],
    optional(redisUrl),
    null,
    'a Redis in which several servers keep one ready queue',
  ),
  heartbeatIntervalMs: setting(
    '--heartbeat-seconds',
    ['SLUICE_HEARTBEAT_INTERVAL_MS'],
    whole(100, 3_600_000),
    10_000,
    'how often workers report',
    secondsAsMs(100, 3_600_000),
  ),
  leaseMs: setting(
    '--lease-seconds',
    ['SLUICE_LEASE_MS'],
    whole(1_000, 86_400_000),
    30_000,
    'how long a worker may be silent before its tasks go to others',
    secondsAsMs(1_000, 86_400_000),
  ),
  wakeOrder: setting(
    null,
    ['SLUICE_WAKE_ORDER'],
    oneOf(wakeOrders),
    'spread',
    'who is woken for work: the least loaded worker, or the same ones first so that others go idle',
  ),
  retainEndedDays: setting(
    '--retain-ended-days',
    ['SLUICE_RETAIN_ENDED_DAYS'],
    whole(1, 36_500),
    7,
    'how long tasks that completed, failed or were cancelled are kept',
  ),
  retainDeadLettersDays: setting(
    '--retain-dead-letters-days',
    ['SLUICE_RETAIN_DEAD_LETTERS_DAYS'],
    whole(1, 36_500),
    30,
    'how long dead letters are kept',
  ),
  auditDays: setting(
    '--audit-days',
    ['SLUICE_AUDIT_DAYS'],
    whole(1, 36_500),
    365,
    'how long the audit is kept',
  ),
  maxScheduleDays: setting(
    '--max-schedule-days',
    ['SLUICE_MAX_SCHEDULE_DAYS'],
    whole(1, 3_650),
    366,
    'how far ahead a task may be scheduled, by run_at or delay_seconds',
  ),
  maxActive: setting(
    '--max-active',
    ['SLUICE_MAX_ACTIVE'],
    whole(1, maxActiveTasks),
    10_000_000,
    'how many tasks may be active, in all queues together; further ones are refused',
  ),
  maxActiveMedium: setting(
    '--max-active-medium',
    ['SLUICE_MAX_ACTIVE_MEDIUM'],
    threshold,
    '90%',
    'from where on tasks of medium priority are refused: a share of the ceiling, or tasks',
  ),
  maxActiveLow: setting(
    '--max-active-low',
    ['SLUICE_MAX_ACTIVE_LOW'],
    threshold,
    '80%',
    'from where on tasks of low priority are refused',
  ),
  submitLimitPerKey: setting(
    '--submit-limit-per-key',
    ['SLUICE_SUBMIT_LIMIT_PER_KEY'],
    optional(submissionLimits),
    null,
    'how many tasks may be submitted with one API key, like 100/60s,1000/1h',
  ),
  submitLimitPerUser: setting(
    '--submit-limit-per-user',
    ['SLUICE_SUBMIT_LIMIT_PER_USER'],
    optional(submissionLimits),
    null,
    'how many tasks may be submitted for one user_id, like 10/s,1000/1d',
  ),
  ...taskSettings,
  ...scaleSettings,
  ...alertSettings,
  environment: setting(
    '--environment',
    ['SLUICE_ENVIRONMENT'],
    optional(text),
    null,
    'a name that the dashboard shows as a badge, for example production',
  ),
  corsOrigins: setting(
    '--cors-origins',
    ['SLUICE_CORS_ORIGINS'],
    origins,
    [],
    'whose pages in a browser may call, with a key',
  ),
  openMetrics: setting(
    '--open-metrics',
    ['SLUICE_OPEN_METRICS'],
    yesOrNo,
    false,
    'whether /metrics is answered without a key',
  ),
  trustProxy: setting(
    '--trust-proxy',
    ['SLUICE_TRUST_PROXY'],
    networks,
    [],
    'proxies in front that are believed who calls and whether by TLS (X-Forwarded-…)',
  ),
  drainMs: setting(
    '--drain-seconds',
    ['SLUICE_DRAIN_MS'],
    whole(0, 3_600_000),
    5_000,
    'how long a server still answers after SIGTERM, for load balancers to notice',
    secondsAsMs(0, 3_600_000),
  ),
  maxConnections: setting(
    '--max-connections',
    ['SLUICE_MAX_CONNECTIONS'],
    whole(1, 1_000_000),
    10_000,
    'connections to this server at most; health checks have places besides',
  ),
  logLevel: setting('--log-level', ['SLUICE_LOG_LEVEL'], oneOf(logLevels), 'info', 'what to log'),
  logFormat: setting(
    '--log-format',
    ['SLUICE_LOG_FORMAT'],
    optional(oneOf(logFormats)),
    null,
    'pretty or json; when absent, pretty in a terminal and json elsewhere',
  ),
  logTransitions: setting(
    '--log-transitions',
    ['SLUICE_LOG_TRANSITIONS'],
    oneOf(transitionModes),
    defaultTransitionMode,
    'which changes of state of tasks, circuits and workers are logged: all, problems or off',
  ),
  logPayloads: setting(
    '--log-payloads',
    ['SLUICE_LOG_PAYLOADS'],
    yesOrNo,
    false,
    'whether parameters, results and errors of tasks are logged, without what is called a secret',
  ),
} as const;

type SettingName = keyof typeof serveSettings;
type ValueOf<Name extends SettingName> =
  (typeof serveSettings)[Name] extends Setting<infer Value> ? Value : never;
type Given = { readonly [Name in SettingName]: ValueOf<Name> };

/** A pure function of what was said where: a whole configuration, or everything wrong with it. */
export function checkServeConfig(sources: ConfigSources): CheckedConfig {
  const problems = unknownKeys(sources);
  const read = <Value>(name: SettingName, one: Setting<Value>) =>
    readSetting(name, one, sources, problems);
  const given: Given = {
    host: read('host', serveSettings.host),
    port: read('port', serveSettings.port),
    data: read('data', serveSettings.data),
    databaseUrl: read('databaseUrl', serveSettings.databaseUrl),
    poolSize: read('poolSize', serveSettings.poolSize),
    redisUrl: read('redisUrl', serveSettings.redisUrl),
    heartbeatIntervalMs: read('heartbeatIntervalMs', serveSettings.heartbeatIntervalMs),
    leaseMs: read('leaseMs', serveSettings.leaseMs),
    wakeOrder: read('wakeOrder', serveSettings.wakeOrder),
    retainEndedDays: read('retainEndedDays', serveSettings.retainEndedDays),
    retainDeadLettersDays: read('retainDeadLettersDays', serveSettings.retainDeadLettersDays),
    auditDays: read('auditDays', serveSettings.auditDays),
    maxScheduleDays: read('maxScheduleDays', serveSettings.maxScheduleDays),
    maxActive: read('maxActive', serveSettings.maxActive),
    maxActiveMedium: read('maxActiveMedium', serveSettings.maxActiveMedium),
    maxActiveLow: read('maxActiveLow', serveSettings.maxActiveLow),
    submitLimitPerKey: read('submitLimitPerKey', serveSettings.submitLimitPerKey),
    submitLimitPerUser: read('submitLimitPerUser', serveSettings.submitLimitPerUser),
    ...readTaskSettings(read),
    ...readScaleSettings(read),
    ...readAlertSettings(read),
    environment: read('environment', serveSettings.environment),
    corsOrigins: read('corsOrigins', serveSettings.corsOrigins),
    openMetrics: read('openMetrics', serveSettings.openMetrics),
    trustProxy: read('trustProxy', serveSettings.trustProxy),
    maxConnections: read('maxConnections', serveSettings.maxConnections),
    drainMs: read('drainMs', serveSettings.drainMs),
    logLevel: read('logLevel', serveSettings.logLevel),
    logFormat: read('logFormat', serveSettings.logFormat),
    logTransitions: read('logTransitions', serveSettings.logTransitions),
    logPayloads: read('logPayloads', serveSettings.logPayloads),
  };
  problems.push(...contradictions(given, sources));
  if (problems.length > 0) return { kind: 'invalid', problems };
  return { kind: 'valid', config: toConfig(given, sources) };
}

/** Where a server with these settings listens; other settings are not looked at. */
export function checkAddress(
  sources: ConfigSources,
): Pick<ServeConfig, 'host' | 'port'> & { readonly problems: readonly string[] } {
  const problems: string[] = [];
  const host = readSetting('host', serveSettings.host, sources, problems);
  const port = readSetting('port', serveSettings.port, sources, problems);
  return { host, port, problems };
}

/** For people to read: nothing in it is secret. */
export function describeServeConfig(config: ServeConfig): Readonly<Record<string, string>> {
  const { database, redisUrl } = config;
  const where =
    database.kind === 'postgres'
      ? hidePassword(database.url)
      : `embedded, in ${database.dataDir ?? 'memory'}`;
  return {
    database: where,
    ...(redisUrl === null ? {} : { redis: hidePassword(redisUrl) }),
    heartbeat: `${config.heartbeatIntervalMs} ms`,
    'wake order': config.wakeOrder,
    lease: `${config.leaseMs} ms`,
    kept: `${config.retainEndedDays} days, dead letters ${config.retainDeadLettersDays}`,
    'active at most': `${config.maxActive} tasks (medium ${config.maxActiveMedium}, low ${config.maxActiveLow})`,
    ...submitLimitsText('submits per key', config.submitLimitPerKey),
    ...submitLimitsText('submits per user', config.submitLimitPerUser),
    ...describeScaling(config.scaling),
    ...describeAlerts(config.alerts),
    log: `${config.logLevel}, transitions: ${config.logTransitions}${config.logPayloads ? ', with payloads' : ''}`,
  };
}

function submitLimitsText(
  name: string,
  limits: readonly SubmissionLimit[],
): Readonly<Record<string, string>> {
  return limits.length === 0 ? {} : { [name]: limits.map(submissionLimitText).join(', ') };
}

function toConfig(given: Given, sources: ConfigSources): ServeConfig {
  const { host, port, heartbeatIntervalMs, leaseMs, wakeOrder, logLevel } = given;
  const { retainEndedDays, retainDeadLettersDays, auditDays } = given;
  const { maxScheduleDays, maxActive, maxActiveMedium, maxActiveLow } = given;
  return {
    host,
    port,
    database: databaseOf(given, sources),
    redisUrl: isOutshouted('redisUrl', sources) ? null : given.redisUrl,
    heartbeatIntervalMs,
    leaseMs,
    wakeOrder,
    retainEndedDays,
    retainDeadLettersDays,
    auditDays,
    maxScheduleDays,
    maxActive,
    maxActiveMedium,
    maxActiveLow,
    submitLimitPerKey: given.submitLimitPerKey ?? [],
    submitLimitPerUser: given.submitLimitPerUser ?? [],
    tasks: taskConfig(given),
    assignmentTimeoutMs: given.assignmentTimeoutMs,
    scaling: scaleConfig(given),
    alerts: alertConfig(given),
    environment: given.environment,
    corsOrigins: given.corsOrigins,
    openMetrics: given.openMetrics,
    trustProxy: given.trustProxy,
    maxConnections: given.maxConnections,
    drainMs: given.drainMs,
    logLevel,
    logFormat: given.logFormat,
    logTransitions: given.logTransitions,
    logPayloads: given.logPayloads,
  };
}

function databaseOf(
  { data, databaseUrl, poolSize }: Given,
  sources: ConfigSources,
): ServeConfig['database'] {
  if (databaseUrl !== null && !isOutshouted('databaseUrl', sources)) {
    return { kind: 'postgres', url: databaseUrl, ...(poolSize === null ? {} : { poolSize }) };
  }
  return data === memoryDataDir
    ? { kind: 'pglite' }
    : { kind: 'pglite', dataDir: data ?? '.sluice' };
}

/** A flag beats a variable, also when it asks for the embedded database, which is for one process. */
function isOutshouted(name: 'databaseUrl' | 'redisUrl', sources: ConfigSources): boolean {
  return sourceRank('data', sources) < sourceRank(name, sources);
}

function contradictions(given: Given, sources: ConfigSources): string[] {
  const found: string[] = [];
  const { heartbeatIntervalMs, leaseMs, assignmentTimeoutMs } = given;
  found.push(...serverConflicts({ heartbeatIntervalMs, leaseMs }));
  found.push(...assignmentConflicts(assignmentTimeoutMs, heartbeatIntervalMs));
  found.push(...taskSettingFaults(given));
  found.push(...scaleConflicts(given));
  found.push(...alertConflicts(given));
  found.push(...ceilingFaults(given));
  const dataRank = sourceRank('data', sources);
  if (dataRank !== noRank && dataRank === sourceRank('databaseUrl', sources)) {
    found.push(
      'data and databaseUrl exclude each other: the embedded database or a Postgres server.',
    );
  }
  const redis = spoken('redisUrl', sources);
  const embeds = spoken('databaseUrl', sources) === null || isOutshouted('databaseUrl', sources);
  if (redis !== null && embeds && !isOutshouted('redisUrl', sources)) {
    found.push(
      `${redis.by} needs a Postgres server, named by databaseUrl: the embedded database is for one ` +
        'process, which keeps its ready queue in memory.',
    );
  }
  if (redis !== null && given.poolSize === 1) {
    found.push('poolSize must be at least 2 with Redis: servers take turns at feeding a window.');
  }
  return found;
}

/** Who may be listened to without API keys. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

interface Spoken {
  readonly by: string;
  readonly given: unknown;
  /** 0 counts most. */
  readonly rank: number;
}

const flagRank = 0;
const noRank = 3;

function spoken(name: SettingName, { flags, env, file }: ConfigSources): Spoken | null {
  const { flag, variables } = serveSettings[name];
  if (flags[name] !== undefined) return { by: flag ?? name, given: flags[name], rank: flagRank };
  const variable = variables.find((candidate) => isSet(env[candidate]));
  if (variable !== undefined) return { by: variable, given: env[variable], rank: 1 };
  const value = file?.values[name];
  return file === null || value === undefined
    ? null
    : { by: `${name} in ${file.path}`, given: value, rank: 2 };
}

/** An empty variable is how a shell says that there is none. */
function isSet(value: unknown): boolean {
  return value !== undefined && value !== '';
}

function sourceRank(name: SettingName, sources: ConfigSources): number {
  return spoken(name, sources)?.rank ?? noRank;
}

/** They may hold a password, and what can't be parsed can't be hidden in part. */
const secretSettings: readonly SettingName[] = [
  'databaseUrl',
  'redisUrl',
  'scaleWebhook',
  'scaleWebhookSecret',
];

function readSetting<Value>(
  name: SettingName,
  { parse, parseFlag, fallback }: Setting<Value>,
  sources: ConfigSources,
  problems: string[],
): Value {
  const said = spoken(name, sources);
  if (said === null) return fallback;
  const parsed = said.rank === flagRank ? parseFlag(said.given) : parse(said.given);
  if (parsed.kind === 'value') return parsed.value;
  const shown = secretSettings.includes(name) ? '' : `, not ${JSON.stringify(said.given)}`;
  problems.push(`${said.by} must be ${parsed.mustBe}${shown}.`);
  return fallback;
}

function unknownKeys({ file }: ConfigSources): string[] {
  if (file === null) return [];
  const known = Object.keys(serveSettings);
  return Object.keys(file.values)
    .filter((key) => !known.includes(key))
    .map((key) => `${key} in ${file.path} is not a setting; there are ${known.join(', ')}.`);
}
