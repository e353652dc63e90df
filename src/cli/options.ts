import { InvalidArgumentError, Option } from 'commander';
import { isUuid, type TaskId } from '../domain/ids.js';
import { priorities } from '../domain/priority.js';
import { bounds } from '../protocol/bounds.js';
import { taskIdFromWire } from '../protocol/common-wire.js';
import { logFormats, logLevels } from '../runtime/log-format.js';
import type { ListInclude } from '../protocol/tasks-api.js';

export function priorityOption(flags: string, description: string): Option {
  return new Option(flags, description).choices(priorities);
}

export function limitOption(fallback: number): Option {
  return new Option('--limit <n>', 'how many at most')
    .default(fallback)
    .argParser(wholeNumber(1, bounds.pageSize));
}

export function logLevelOption(): Option {
  return new Option('--log-level <level>', 'what to log; debug shows where a handler threw')
    .env('SLUICE_LOG_LEVEL')
    .choices(logLevels)
    .default('info');
}

export function logFormatOption(): Option {
  return new Option('--log-format <format>', 'pretty in a terminal, else json')
    .env('SLUICE_LOG_FORMAT')
    .choices(logFormats);
}

export function includeOption(): Option {
  return new Option(
    '--include <fields>',
    'with --json: parameters, result, or both with a comma',
  ).argParser(includes);
}

function includes(text: string): ListInclude[] {
  return names(text).map((name) => {
    if (name === 'parameters' || name === 'result') return name;
    throw new InvalidArgumentError('It must be parameters, result or parameters,result.');
  });
}

export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  };
}

const unitsMs: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** 30s, 10m, 2h or 1d, in milliseconds. */
export function duration(text: string): number {
  const [, count, unit = ''] = /^([1-9]\d{0,5})([smhd])$/.exec(text) ?? [];
  const unitMs = unitsMs[unit];
  if (unitMs === undefined) {
    throw new InvalidArgumentError('It must be a whole number and s, m, h or d, like 10m.');
  }
  return Number(count) * unitMs;
}

/** An argument that names a task. */
export function taskId(text: string): TaskId {
  const id = taskIdFromWire(text);
  if (isUuid(id)) return id;
  throw new InvalidArgumentError('It must be the whole id of a task, as "sluice tasks" lists it.');
}

export function names(text: string): string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}
