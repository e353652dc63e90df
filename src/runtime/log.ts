import { pino, type DestinationStream, type LogFn, type Logger } from 'pino';
import type { LogFormat } from './log-format.js';
import { prettyLine } from './pretty-line.js';

export type { Logger } from 'pino';

export const silentLog: Logger = pino({ level: 'silent' });

/** An error that follows from an outage: every call fails alike, and a stack says nothing about why. */
export interface Outage {
  readonly isOutage: boolean;
}

/** On stderr: stdout belongs to what a command answers. Null: by whether it is a terminal. */
export function logDestination(format: LogFormat | null = null): DestinationStream {
  const stderr = pino.destination(2);
  if ((format ?? (process.stderr.isTTY ? 'pretty' : 'json')) === 'json') return stderr;
  const { isTTY } = process.stderr;
  const hasColors = isTTY && !process.env.NO_COLOR;
  return {
    write: (line) => {
      const columns = isTTY ? process.stderr.columns : Infinity;
      stderr.write(prettyLine(line, { hasColors, columns }));
    },
  };
}

export function createLog(
  level: string,
  destination: DestinationStream = logDestination(),
): Logger {
  const outages = new OutageLines();
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: loggedError },
      hooks: {
        logMethod(args, method) {
          const line = outages.line(args);
          if (line !== null) method.apply(this, line);
        },
      },
    },
    destination,
  );
}

type LineArguments = Parameters<LogFn>;

const outageLineMs = 1_000;

/** Errors of outages get one line a second, whatever they are of; it says how many were left out. */
class OutageLines {
  #nextMs = -Infinity;
  #leftOut = 0;

  /** Null: not now. */
  line(args: LineArguments): LineArguments | null {
    const [about, ...rest] = args;
    if (!isOutage(errorIn(about))) return args;
    const nowMs = performance.now();
    if (nowMs < this.#nextMs) {
      this.#leftOut += 1;
      return null;
    }
    const leftOut = this.#leftOut;
    this.#nextMs = nowMs + outageLineMs;
    this.#leftOut = 0;
    const whole = { ...(about as object), ...(leftOut === 0 ? {} : { left_out: leftOut }) };
    return [whole, ...rest] as unknown as LineArguments;
  }
}

function errorIn(about: unknown): unknown {
  return typeof about === 'object' && about !== null && 'err' in about ? about.err : undefined;
}

function isOutage(error: unknown, causes = 0): boolean {
  if (!(error instanceof Error)) return false;
  if ('isOutage' in error && error.isOutage === true) return true;
  return causes < maxCauses && isOutage(error.cause, causes + 1);
}

/** Names that help to find out, and hold no value of anybody's. */
const kept = ['code', 'severity', 'table', 'column', 'constraint', 'routine'] as const;
/** A cause of a cause of a cause says nothing new. */
const maxCauses = 5;

/** What its author wrote. Drivers hang rows, commands and passwords on their errors: they stay out. */
export function loggedError(error: unknown): unknown {
  return logged(error, isOutage(error), 0);
}

function logged(error: unknown, isExpected: boolean, causes: number): unknown {
  if (!(error instanceof Error)) return { type: typeof error };
  const { name, message, stack, cause } = error;
  const members = kept.flatMap((member) => {
    const value: unknown = Reflect.get(error, member);
    return typeof value === 'string' ? [[member, value] as const] : [];
  });
  return {
    type: name,
    message,
    ...Object.fromEntries(members),
    ...(isExpected ? {} : { stack }),
    ...(cause === undefined || causes === maxCauses
      ? {}
      : { cause: logged(cause, isExpected, causes + 1) }),
  };
}
