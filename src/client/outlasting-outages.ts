import { SluiceError } from '../domain/errors.js';
import { pause, retryDelayMs } from '../worker/backoff.js';

/** A server that is restarted, or whose standby takes over, is back well within this. */
const patienceMs = 60_000;

/** For calls that may be made twice. An outage that lasts is thrown after all. */
export async function outlastingOutages<Answer>(
  call: () => Promise<Answer>,
  signal: AbortSignal = new AbortController().signal,
): Promise<Answer> {
  const givesUpAt = performance.now() + patienceMs;
  for (let failures = 0; ; failures += 1) {
    try {
      return await call();
    } catch (error) {
      if (!isOutage(error) || signal.aborted || performance.now() >= givesUpAt) throw error;
      await pause(retryDelayMs(error, failures), signal);
    }
  }
}

function isOutage(error: unknown): boolean {
  return error instanceof SluiceError && error.code === 'unavailable';
}
