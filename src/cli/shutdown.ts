const signals = ['SIGINT', 'SIGTERM'] as const;
/** What a module may leave open, a pool of connections say, gets this long to end by itself. */
const lastWordsMs = 1_000;

/** What a process is told to stop by; null: its parent is gone, or it ended by itself. */
export type StopSignal = (typeof signals)[number] | null;

/**
 * Runs `stop` at the first SIGINT or SIGTERM, or when the parent that started this process with a
 * channel is gone, and resolves when it is done. A second signal ends the process at once.
 */
export async function untilShutdown(
  stop: (signal: StopSignal) => Promise<void>,
  /** Resolves when there is nothing left to wait for. */
  ended = new Promise<void>(() => undefined),
  /** What a second signal does first. */
  atOnce: () => void = () => undefined,
): Promise<void> {
  const signal = await Promise.race([ended, firstSignal(atOnce)]);
  await stop(signal ?? null);
}

function firstSignal(atOnce: () => void): Promise<StopSignal> {
  return new Promise((resolve) => {
    let signalled = false;
    for (const signal of signals) {
      process.on(signal, () => {
        if (signalled) {
          atOnce();
          process.exit(1);
        }
        signalled = true;
        resolve(signal);
      });
    }
    if (process.connected) process.once('disconnect', () => resolve(null));
  });
}

/**
 * Resolves when a process that a parent looks after is to stop: a signal, or the parent is gone.
 * Terminals and service managers signal all processes, so a signal here may be the one that the
 * parent got too: only the parent counts to two. Without a parent, the process does.
 */
export function untilOrphanedOrSignalled(): Promise<void> {
  return new Promise((resolve) => {
    let signalsAlone = 0;
    for (const signal of signals) {
      process.on(signal, () => {
        if (!process.connected) signalsAlone += 1;
        if (signalsAlone > 1) process.exit(1);
        resolve();
      });
    }
    if (process.connected) process.once('disconnect', resolve);
    else resolve();
  });
}

/** Ends this process also when something of the user's still holds it. */
export function leaveSoon(): void {
  setTimeout(() => process.exit(), lastWordsMs).unref();
}
