import type { Command } from 'commander';
import { SluiceError } from '../../domain/errors.js';
import { limitBounds } from '../../domain/limit-faults.js';
import type { QueueLimit } from '../../domain/queue-settings.js';
import type { SluiceApi } from '../../protocol/api.js';
import { defined } from '../../protocol/defined.js';
import type { QueueChange, QueueView } from '../../protocol/queues-api.js';
import { queueToWire } from '../../protocol/queues-wire.js';
import { existingQueue } from '../existing-queue.js';
import { wholeNumber } from '../options.js';
import { printFields, printJson, printLine } from '../output.js';
import {
  inForceText,
  limitUseText,
  pauseText,
  queueLimitsText,
  runningText,
} from '../queue-text.js';
import { ratesOf, withRateOptions, type RateOptions } from '../rates.js';
import { remoteApi, withRemoteOptions, type RemoteOptions } from '../remote.js';

interface LimitOptions extends RemoteOptions, RateOptions {
  readonly concurrency?: number;
  readonly use?: readonly string[];
  readonly none?: boolean;
}

export function limitCommand(program: Command): void {
  const command = program
    .command('limit <queue>')
    .description('Set limits of a queue, or show them; what is not named stays as it is');
  withRateOptions(command)
    .option('--concurrency <n>', 'so many run at once', wholeNumber(1, limitBounds.rate))
    .option('--use <limit>', 'a limit that queues share; may be repeated', addName)
    .option('--none', 'no limits but those named beside this');
  withRemoteOptions(command).action(runLimit);
}

async function runLimit(name: string, options: LimitOptions): Promise<void> {
  const rates = ratesOf(options);
  const uses = [...new Set(options.use ?? [])].map((use) => ({ use }));
  const named = [...rates, ...uses];
  const isChange = named.length > 0 || options.concurrency !== undefined || options.none === true;
  const api = await remoteApi(options);
  const queue = isChange
    ? await api.changeQueue(name, await changeOf(api, name, named, options))
    : await existingQueue(api, name);
  if (options.json === true) printJson(queueToWire(queue));
  else await show(api, queue, isChange);
}

async function changeOf(
  api: SluiceApi,
  name: string,
  named: readonly QueueLimit[],
  options: LimitOptions,
): Promise<QueueChange> {
  const { none, concurrency, rps, rpm, tpm, rate, use, burst } = options;
  if (none === true) return { limits: named, maxConcurrency: concurrency ?? null };
  const limits =
    rate === undefined && use === undefined && burst === undefined
      ? defined({ rps, rpm, tpm })
      : await limitsWith(api, name, named);
  return defined({ limits, maxConcurrency: concurrency });
}

/** Those that have no usual name are not changed one by one: the whole list is written. */
async function limitsWith(
  api: SluiceApi,
  name: string,
  named: readonly QueueLimit[],
): Promise<readonly QueueLimit[]> {
  const isNamed = (limit: QueueLimit) => named.some((other) => keyOf(other) === keyOf(limit));
  return [...(await limitsOf(api, name)).filter((limit) => !isNamed(limit)), ...named];
}

/** A queue that is not there yet is made by what is set. */
async function limitsOf(api: SluiceApi, name: string): Promise<readonly QueueLimit[]> {
  try {
    return (await api.getQueue(name)).settings.limits;
  } catch (error) {
    if (error instanceof SluiceError && error.code === 'queue_not_found') return [];
    throw error;
  }
}

function keyOf(limit: QueueLimit): string {
  return 'use' in limit ? `use ${limit.use}` : `unit ${limit.unit}`;
}

async function show(api: SluiceApi, queue: QueueView, isChange: boolean): Promise<void> {
  const isShared = queue.settings.limits.some((limit) => 'use' in limit);
  const limits = queueLimitsText(queue, isShared ? await api.listLimits() : []);
  printLine(limits + inForceText(queue));
  if (isChange) return;
  const paused = pauseText(queue);
  printFields([
    ...queue.live.usage.map((use) => [use.limit ?? use.unit, limitUseText(use)] as const),
    ['running', runningText(queue)],
    ...(paused === '' ? [] : ([['state', paused]] as const)),
  ]);
}

function addName(name: string, before: readonly string[] = []): string[] {
  return [...before, name];
}
