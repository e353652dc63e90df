// Loaded into a server with --expose-gc: says over its channel what is left after a collection.
process.on('message', (asked) => {
  if (asked !== 'kept bytes') return;
  // What is finalized in the first is freed by the second.
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  process.send(heapUsed + external);
});
// It listens, and holds the process no longer for that.
process.channel.unref();
