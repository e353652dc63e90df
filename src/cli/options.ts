import { InvalidArgumentError, Option } from 'commander';
import { isUuid, type TaskId, type WorkerId } from '../domain/ids.js';
import { priorities } from '../domain/priority.js';
import { bounds } from '../protocol/bounds.js';
import { taskIdFromWire, workerIdFromWire } from '../protocol/common-wire.js';
import { logFormats, logLevels, transitionModes } from '../runtime/log-format.js';
import type { ListInclude } from '../protocol/tasks-api.js';

export function priorityOption(flags: string, description: string): Option {
  return new Option(flags, description).choices(priorities);
}

export function limitOption(fallback: number): Option {
  return new Option('--limit <n>', 'how many at most')
    .default(fallback)
    .argParser(wholeNumber(1, bounds.pageSize));
}

/** An empty variable is how a shell says that there is none. */
export function orVariable(option: Option, name: string): Option {
  return process.env[name] === '' ? option : option.env(name);
}

export function logLevelOption(): Option {
  const option = new Option(
    '--log-level <level>',
    'what to log; debug shows where a handler threw',
  );
  return orVariable(option, 'SLUICE_LOG_LEVEL').choices(logLevels).default('info');
}

export function logFormatOption(): Option {
  const option = new Option('--log-format <format>', 'pretty in a terminal, else json');
  return orVariable(option, 'SLUICE_LOG_FORMAT').choices(logFormats);
}

export function logTransitionsOption(): Option {
  const option = new Option(
    '--log-transitions <mode>',
    'which attempts are logged: all, problems (those that fail) or off (problems)',
  );
  return orVariable(option, 'SLUICE_LOG_TRANSITIONS').choices(transitionModes);
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

export function decimal(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+(\.\d+)?$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It must be a number from ${min} to ${max}, like 2.5.`);
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

/** An argument that names a worker. */
export function workerId(text: string): WorkerId {
  const id = workerIdFromWire(text);
  if (isUuid(id)) return id;
  throw new InvalidArgumentError(
    'It must be the whole id of a worker, as "sluice workers" lists it.',
  );
}

export function names(text: string): string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

export function instant(text: string): Date {
  const at = new Date(text);
  if (!Number.isNaN(at.getTime())) return at;
  throw new InvalidArgumentError('It must be a time, like 2026-01-31T12:00Z.');
}
