/**
 * Runs `stop` at the first SIGINT or SIGTERM, or when the parent that started this process with a
 * channel is gone, and resolves when it is done. A second signal ends the process at once.
 */
export async function untilShutdown(
  stop: () => Promise<void>,
  /** Resolves when there is nothing left to wait for. */
  ended = new Promise<void>(() => undefined),
): Promise<void> {
  await Promise.race([ended, firstSignal()]);
  await stop();
}

function firstSignal(): Promise<void> {
  return new Promise((resolve) => {
    let signalled = false;
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        if (signalled) process.exit(1);
        signalled = true;
        resolve();
      });
    }
    if (process.connected) process.once('disconnect', resolve);
  });
}
