import { InvalidArgumentError, type Command } from 'commander';
import { limitBounds } from '../domain/limit-faults.js';
import type { RateLimit } from '../domain/queue-settings.js';
import { CliError } from './failure.js';
import { wholeNumber } from './options.js';

export interface RateOptions {
  readonly rpm?: number;
  readonly tpm?: number;
  readonly rps?: number;
  readonly rate?: readonly RateLimit[];
  readonly burst?: number;
}

const rateNumber = wholeNumber(1, limitBounds.rate);

/** Rates as people say them. */
export function withRateOptions(command: Command): Command {
  return command
    .option('--rpm <n>', 'requests a minute', rateNumber)
    .option('--tpm <n>', 'tokens a minute', rateNumber)
    .option('--rps <n>', 'requests a second', rateNumber)
    .option('--rate <unit=n/seconds>', 'any other, like images=50/3600; may be repeated', addRate)
    .option(
      '--burst <n>',
      'of the rates named: so many may pass at once, and be added to the bound',
      wholeNumber(1, limitBounds.burst),
    );
}

/** The limits that were named, one for each unit. */
export function ratesOf({ rpm, tpm, rps, rate = [], burst }: RateOptions): RateLimit[] {
  const named = [
    ...rateIn('requests', rpm, 60),
    ...rateIn('tokens', tpm, 60),
    ...rateIn('requests', rps, 1),
    ...rate,
  ];
  const twice = named.find(({ unit }, index) => named.slice(0, index).some((a) => a.unit === unit));
  if (twice !== undefined) {
    throw new CliError(`Only one limit for ${twice.unit}: name it once.`, { exitCode: 2 });
  }
  if (burst !== undefined && named.length === 0) {
    throw new CliError('--burst goes with a rate: name one, like --rpm 500.', { exitCode: 2 });
  }
  return named.map((limit) => ({ ...limit, burst: burst ?? null }));
}

function rateIn(unit: string, rate: number | undefined, perSeconds: number): RateLimit[] {
  return rate === undefined ? [] : [{ unit, rate, perSeconds, burst: null }];
}

function addRate(text: string, before: readonly RateLimit[] = []): RateLimit[] {
  const [, unit, rate, seconds] = /^([\w.:/-]+)=(\d+)\/(\d+)$/.exec(text) ?? [];
  if (unit === undefined || rate === undefined || seconds === undefined) {
    throw new InvalidArgumentError(
      'It must be a unit, a whole number and a window in seconds, like images=50/3600.',
    );
  }
  const perSeconds = wholeNumber(1, limitBounds.perSeconds)(seconds);
  return [...before, { unit, rate: rateNumber(rate), perSeconds, burst: null }];
}
