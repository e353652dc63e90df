import { CommanderError } from 'commander';
import { SluiceError } from '../domain/errors.js';

/** What happened, why, and what to do next. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly next: string | null;
  readonly exitCode: number;

  constructor(
    message: string,
    options: { readonly next?: string; readonly exitCode?: 1 | 2; readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.next = options.next ?? null;
    this.exitCode = options.exitCode ?? 1;
  }
}

/** 2: the command was not understood. 1: it was, and did not work. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  return error instanceof CliError ? error.exitCode : 1;
}

/** For people; the stack is for whoever asks for it with SLUICE_DEBUG. */
export function describeFailure(error: unknown, debug = isDebugging()): string {
  if (debug && error instanceof Error) return describeChain(error);
  if (error instanceof SluiceError) return describeRefusal(error);
  if (error instanceof CliError && error.next !== null) return `${error.message}\n${error.next}`;
  return error instanceof Error ? error.message : String(error);
}

function describeRefusal(error: SluiceError): string {
  const fields = (error.errors ?? [])
    .map(({ path, message }) => `${path} ${message}`)
    .filter((field) => field !== error.message)
    .map((field) => `  ${field}`);
  return [error.message, ...fields, ...nextStep(error)].join('\n');
}

function nextStep({ code, retryAfterSeconds, cause }: SluiceError): string[] {
  switch (code) {
    case 'unauthorized':
      return ['Set SLUICE_API_KEY to a valid key; "sluice keys create" makes one.'];
    case 'forbidden':
      return ['Set SLUICE_API_KEY to a key that may do this.'];
    case 'unavailable':
      // With a cause no server answered; without one a server did, and lacks what it needs.
      return cause === undefined
        ? ['The server runs. "sluice doctor", where it runs, says what it lacks.']
        : ['Is it running? Start one with "sluice serve", or say where it is with --url.'];
    case 'refused':
      return retryAfterSeconds === null ? [] : [`Try again in ${retryAfterSeconds} s.`];
    default:
      return [];
  }
}

function describeChain(error: Error): string {
  const text = error.stack ?? error.message;
  return error.cause instanceof Error ? `${text}\ncaused by ${describeChain(error.cause)}` : text;
}

function isDebugging(): boolean {
  return Boolean(process.env.SLUICE_DEBUG);
}
