import type { Readable } from 'node:stream';

/**
 * What it gives, as its reader asks for it. `Readable.toWeb` of Node 20 throws where nobody can catch it when a stream
 * is cancelled that has ended already.
 */
export function webStreamOf(
  readable: Readable,
  whenCancelled: () => void,
): ReadableStream<Uint8Array> {
  const chunks = readable.iterator({ destroyOnReturn: false });
  return new ReadableStream<Uint8Array>(
    {
      // What comes after a cancel fails, and is not told: whoever cancelled wants to hear nothing more.
      async pull(controller) {
        const { done, value } = (await chunks.next()) as IteratorResult<Uint8Array, undefined>;
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      cancel: () => {
        whenCancelled();
        void chunks.return?.();
      },
    },
    // Nothing is read ahead: what was not asked for stays where it is counted.
    { highWaterMark: 0 },
  );
}
