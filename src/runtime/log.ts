import { pino, type Logger } from 'pino';

export type { Logger } from 'pino';

export const silentLog: Logger = pino({ level: 'silent' });

/** JSON lines on stderr: stdout belongs to what a command answers. */
export function createLog(level: string): Logger {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination(2));
}
