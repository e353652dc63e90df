import type { Command } from 'commander';
import { limitText } from '../../domain/limit-text.js';
import { limitToWire } from '../../protocol/queues-wire.js';
import { CliError } from '../failure.js';
import { printJson, printLine, printTable } from '../output.js';
import { ratesOf, withRateOptions, type RateOptions } from '../rates.js';
import { remoteApi, withRemoteOptions, type RemoteOptions } from '../remote.js';

export function limitsCommand(program: Command): void {
  const limits = program.command('limits').description('Limits that several queues share');
  withRemoteOptions(limits.command('list', { isDefault: true }).description('List them')).action(
    runList,
  );
  withRemoteOptions(
    withRateOptions(limits.command('set <name>').description('Make one, or change its rate')),
  ).action(runSet);
  withRemoteOptions(
    limits.command('delete <name>').description('Delete one that no queue uses'),
  ).action(runDelete);
}

async function runList(options: RemoteOptions): Promise<void> {
  const items = await (await remoteApi(options)).listLimits();
  if (options.json === true) printJson({ items: items.map(limitToWire), next_cursor: null });
  else if (items.length === 0) printLine('No shared limits: "sluice limits set NAME" makes one.');
  else {
    const rows = items.map((limit) => [limit.name, limitText(limit)]);
    printTable([{ title: 'limit', least: 20 }, { title: 'rate' }], rows);
  }
}

async function runSet(name: string, options: RateOptions & RemoteOptions): Promise<void> {
  const [rate, ...more] = ratesOf(options);
  if (rate === undefined || more.length > 0) {
    throw new CliError('A shared limit has one rate: name it, like --rpm 500.', { exitCode: 2 });
  }
  const limit = await (await remoteApi(options)).putLimit(name, rate);
  if (options.json === true) printJson(limitToWire(limit));
  else printLine(`${limit.name}: ${limitText(limit)}`);
}

async function runDelete(name: string, options: RemoteOptions): Promise<void> {
  await (await remoteApi(options)).deleteLimit(name);
  if (options.json === true) printJson({ name });
  else printLine(`${name} is deleted`);
}
