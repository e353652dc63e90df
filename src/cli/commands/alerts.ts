import type { Command } from 'commander';
import { alertRules, isAlertName } from '../../domain/alerts/rules.js';
import { valueText } from '../../domain/alerts/text.js';
import { alertStates, type AlertList, type AlertView } from '../../protocol/alerts-api.js';
import { alertListToWire, alertToWire } from '../../protocol/alerts-wire.js';
import { CliError } from '../failure.js';
import { paint, printJson, printLine, printNote, printTable } from '../output.js';
import { readableAge, readableSeconds } from '../readable.js';
import { remoteApi, withRemoteOptions, type RemoteOptions } from '../remote.js';

/** Servers evaluate every ten seconds. */
const staleAfterMs = 120_000;

export function alertsCommand(program: Command): void {
  const alerts = program.command('alerts').description('What is wrong now, and what would be told');
  withRemoteOptions(
    alerts
      .command('list', { isDefault: true })
      .description('List those that are pending, firing or silenced')
      .option('--all', 'every rule, with its threshold')
      .option('--state <state>', `only in this state: ${alertStates.join(', ')}`),
  ).action(runList);
  withRemoteOptions(
    alerts
      .command('silence <name>')
      .description('Tell no webhook that it fires, for a time')
      .requiredOption('--seconds <seconds>', 'for how long; 0 ends a silence')
      .option('--note <text>', 'why, for others'),
  ).action(runSilence);
  withRemoteOptions(
    alerts
      .command('set <name>')
      .description('Change when a rule fires; what is not named gets its default')
      .option('--threshold <number>', 'fires beyond it; a share is from 0 to 1')
      .option('--for <seconds>', 'for how long it must be beyond')
      .option('--off', 'do not evaluate it'),
  ).action(runSet);
}

interface ListOptions extends RemoteOptions {
  readonly all?: boolean;
  readonly state?: string;
}

async function runList(options: ListOptions): Promise<void> {
  const state = alertStates.find((one) => one === options.state);
  if (options.state !== undefined && state === undefined) {
    throw new CliError(`--state must be one of ${alertStates.join(', ')}.`, { exitCode: 2 });
  }
  const list = await (await remoteApi(options)).listAlerts(state === undefined ? {} : { state });
  if (options.json === true) printJson(alertListToWire(list));
  else printList(list, options);
}

function printList(list: AlertList, { all, state }: ListOptions): void {
  noteStale(list);
  const showsAll = all === true || state !== undefined;
  const shown = showsAll ? list.items : list.items.filter((alert) => alert.state !== 'ok');
  if (shown.length > 0) printAlerts(shown);
  const well = list.items.length - shown.length;
  if (!showsAll) printLine(wellText(well, shown.length));
  else if (shown.length === 0) printLine(`No alert is ${state ?? 'there'}.`);
}

function wellText(well: number, others: number): string {
  if (others === 0) return `All ${well} rules are well; --all lists them.`;
  return `${well} further rules are well; --all lists them. What to do: docs/alerts.md`;
}

function noteStale({ evaluatedAt }: AlertList): void {
  const now = new Date();
  if (evaluatedAt === null) {
    printNote('No server has evaluated alerts yet: is --alert-interval-seconds 0?');
  } else if (now.getTime() - evaluatedAt.getTime() > staleAfterMs) {
    printNote(
      `Alerts were last evaluated ${readableAge(evaluatedAt, now)}: no server does so now.`,
    );
  }
}

const stateStyles = { firing: 'red', pending: 'yellow', silenced: 'dim', ok: 'green' } as const;

function printAlerts(alerts: readonly AlertView[]): void {
  const now = new Date();
  printTable(
    [
      { title: 'alert', least: 20 },
      { title: 'severity', spare: 3 },
      { title: 'state' },
      { title: 'value', align: 'right' },
      { title: 'threshold', align: 'right', spare: 1 },
      { title: 'for', align: 'right', spare: 4 },
      { title: 'since', spare: 2 },
      { title: 'about', least: 12 },
    ],
    alerts.map((alert) => [
      alert.name,
      alert.severity,
      alert.off ? paint('dim', 'off') : paint(stateStyles[alert.state], alert.state),
      alert.value === null ? '' : numberText(alert.name, alert.value),
      numberText(alert.name, alert.threshold),
      alert.forSeconds === 0 ? '' : readableSeconds(alert.forSeconds),
      alert.since === null ? '' : readableAge(alert.since, now),
      Object.entries(alert.labels)
        .map(([label, value]) => `${label} ${value}`)
        .join(', '),
    ]),
  );
}

/** A server of another version may have rules that are not known here. */
function numberText(name: string, value: number): string {
  return isAlertName(name) ? valueText(alertRules[name].unit, value) : String(value);
}

async function runSilence(
  name: string,
  options: RemoteOptions & { readonly seconds: string; readonly note?: string },
): Promise<void> {
  const seconds = numberOf('--seconds', options.seconds);
  const { note } = options;
  const api = await remoteApi(options);
  const alert = await api.silenceAlert(name, { seconds, ...(note === undefined ? {} : { note }) });
  if (options.json === true) printJson(alertToWire(alert));
  else printLine(silenceText(alert));
}

function silenceText({ name, silencedUntil }: AlertView): string {
  return silencedUntil === null
    ? `${name} is not silenced`
    : `${name} is silenced until ${silencedUntil.toISOString()}`;
}

interface SetOptions extends RemoteOptions {
  readonly threshold?: string;
  readonly for?: string;
  readonly off?: boolean;
}

async function runSet(name: string, options: SetOptions): Promise<void> {
  const draft = {
    ...(options.threshold === undefined
      ? {}
      : { threshold: numberOf('--threshold', options.threshold) }),
    ...(options.for === undefined ? {} : { forSeconds: numberOf('--for', options.for) }),
    ...(options.off === true ? { off: true } : {}),
  };
  const alert = await (await remoteApi(options)).putAlert(name, draft);
  if (options.json === true) printJson(alertToWire(alert));
  else printLine(ruleText(alert));
}

function ruleText({ name, threshold, forSeconds, off }: AlertView): string {
  const after = forSeconds === 0 ? '' : ` for ${readableSeconds(forSeconds)}`;
  return `${name}: ${off ? 'off' : `fires beyond ${numberText(name, threshold)}${after}`}`;
}

function numberOf(flag: string, given: string): number {
  if (/^\d+(\.\d+)?$/.test(given)) return Number(given);
  const what = flag === '--threshold' ? 'a number, 0 or more' : 'a number of seconds, like 300';
  throw new CliError(`${flag} must be ${what}, not ${given}.`, { exitCode: 2 });
}
