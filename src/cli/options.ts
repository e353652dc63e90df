import { InvalidArgumentError, Option } from 'commander';
import type { JsonObject } from '../domain/json.js';
import { priorities } from '../domain/priority.js';
import { bounds } from '../protocol/bounds.js';
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

export function jsonObject(text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new InvalidArgumentError(`It is not JSON: ${(error as Error).message}.`);
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as JsonObject;
  }
  throw new InvalidArgumentError(`It must be a JSON object, like '{"text":"hello"}'.`);
}

export function names(text: string): string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}
