import { InvalidArgumentError, Option, type Command } from 'commander';
import type { QueueView } from '../../protocol/queues-api.js';
import { queueToWire } from '../../protocol/queues-wire.js';
import { existingQueue } from '../existing-queue.js';
import { duration } from '../options.js';
import { printJson, printLine } from '../output.js';
import { inForceText } from '../queue-text.js';
import { remoteApi, withRemoteOptions, type RemoteOptions } from '../remote.js';

interface PauseOptions extends RemoteOptions {
  readonly until?: Date;
  readonly for?: number;
}

export function pauseCommand(program: Command): void {
  const command = program
    .command('pause <queue>')
    .description('Take nothing more of a queue; what runs goes on')
    .addOption(
      new Option('--until <time>', 'goes on by itself then').argParser(time).conflicts('for'),
    )
    .addOption(
      new Option('--for <duration>', 'goes on after 30s, 10m, 2h, 1d').argParser(duration),
    );
  withRemoteOptions(command).action(runPause);
}

export function resumeCommand(program: Command): void {
  const command = program
    .command('resume <queue>')
    .description('Let a queue go on that was paused, or stopped by its service');
  withRemoteOptions(command).action(runResume);
}

async function runPause(name: string, options: PauseOptions): Promise<void> {
  const ends = options.for === undefined ? options.until : new Date(Date.now() + options.for);
  const api = await remoteApi(options);
  await existingQueue(api, name);
  print(await api.pauseQueue(name, ends), options);
}

async function runResume(name: string, options: RemoteOptions): Promise<void> {
  const api = await remoteApi(options);
  await existingQueue(api, name);
  print(await api.resumeQueue(name), options);
}

function print(queue: QueueView, options: RemoteOptions): void {
  if (options.json === true) printJson(queueToWire(queue));
  else printLine(`${queue.name} ${stateOf(queue)}${inForceText(queue)}`);
}

function stateOf({ settings: { paused, pausedUntil } }: QueueView): string {
  if (!paused) return 'goes on';
  return `is paused until ${pausedUntil === null ? 'resumed' : pausedUntil.toISOString()}`;
}

function time(text: string): Date {
  const ends = new Date(text);
  if (!/^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$/.test(text) || Number.isNaN(ends.getTime())) {
    throw new InvalidArgumentError('It must be a time with its zone, like 2030-01-31T12:00:00Z.');
  }
  if (ends.getTime() <= Date.now()) throw new InvalidArgumentError('It is over already.');
  return ends;
}
