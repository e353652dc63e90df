import { SluiceError, type ErrorCode } from '../domain/errors.js';

const firstDelayMs = 100;
const maxDelayMs = 5_000;

/** `random` is in [0, 1): workers that lost the same server don't come back at the same instant. */
export function backoffMs(failures: number, random: number): number {
  const grown = Math.min(firstDelayMs * 2 ** failures, maxDelayMs);
  return grown * (0.5 + random / 2);
}

/** Too slow, and too many: both may go well the next time. */
const comesAgain: ReadonlySet<number> = new Set([408, 429]);

const keyCodes: ReadonlySet<ErrorCode> = new Set(['unauthorized', 'forbidden']);

/** What a server that is away, or can't answer now, looks like; anything else is a refusal. */
export function isAway(error: unknown): boolean {
  return !(error instanceof SluiceError) || error.status >= 500 || comesAgain.has(error.status);
}

/** The server itself refuses the worker's key: it was revoked, has expired, or lacks the scope. */
export function isKeyRefused(error: unknown): error is SluiceError {
  return error instanceof SluiceError && keyCodes.has(error.code);
}

/** An outage is expected and needs no stack, least of all at every try; anything else does. */
export function asLogged(error: unknown): { reason: string } | { err: unknown } {
  return isAway(error) && error instanceof SluiceError ? { reason: chain(error) } : { err: error };
}

function chain({ message, cause }: Error): string {
  return cause instanceof Error ? `${message}: ${chain(cause)}` : message;
}

/** The server's own wish if it has one, else growing with every failure in a row. */
export function retryDelayMs(error: unknown, failures: number): number {
  const wished = error instanceof SluiceError ? error.retryAfterSeconds : null;
  const grown = backoffMs(failures, Math.random());
  return wished === null ? grown : Math.max(Math.min(wished * 1000, maxDelayMs), grown);
}

/** Resolves also when the signal fires: the caller looks. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, signal.aborted ? 0 : ms);
    signal.addEventListener('abort', end, { once: true });
  });
}
