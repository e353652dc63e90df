import { pino, type Logger } from 'pino';

export type { Logger } from 'pino';

export const silentLog: Logger = pino({ level: 'silent' });

/** JSON lines on stderr: stdout belongs to what a command answers. */
export function createLog(level: string): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: loggedError },
    },
    pino.destination(2),
  );
}

/** Names that help to find out, and hold no value of anybody's. */
const kept = ['code', 'severity', 'table', 'column', 'constraint', 'routine'] as const;
/** A cause of a cause of a cause says nothing new. */
const maxCauses = 5;

/** What its author wrote. Drivers hang rows, commands and passwords on their errors: they stay out. */
export function loggedError(error: unknown, causes = 0): unknown {
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
    stack,
    ...(cause === undefined || causes === maxCauses
      ? {}
      : { cause: loggedError(cause, causes + 1) }),
  };
}
