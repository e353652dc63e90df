import { setTimeout as delay } from 'node:timers/promises';

const longestPauseMs = 25;

type Falsy = false | null | undefined | 0 | '';

/**
 * The first truthy answer of `probe`. A probe that throws has not answered yet; what it threw last
 * is the cause of the error at the deadline, which is there to end a hung test, not to measure.
 */
export async function until<Answer>(
  awaited: string,
  probe: () => Answer | Promise<Answer>,
  { deadlineMs = 120_000, everyMs = 5 } = {},
): Promise<Exclude<Awaited<Answer>, Falsy>> {
  const startMs = performance.now();
  let cause: unknown;
  while (true) {
    try {
      const answer = await probe();
      if (answer) return answer as Exclude<Awaited<Answer>, Falsy>;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    const waitedMs = performance.now() - startMs;
    if (waitedMs >= deadlineMs) {
      throw new Error(`Waited ${deadlineMs} ms in vain for ${awaited}`, { cause });
    }
    // What takes long is asked less often: the machine has better to do.
    await delay(Math.max(everyMs, Math.min(waitedMs / 20, longestPauseMs)));
  }
}
