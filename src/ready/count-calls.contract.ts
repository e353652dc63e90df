type Method = (this: unknown, ...args: unknown[]) => unknown;

/** How often methods of these classes are called meanwhile: a cost without a clock. */
export async function countCalls(
  classes: readonly { readonly prototype: object }[],
  during: () => Promise<void>,
): Promise<number> {
  let calls = 0;
  const originals = classes.flatMap(({ prototype }) =>
    Object.entries(Object.getOwnPropertyDescriptors(prototype)).flatMap(([name, descriptor]) => {
      if (name === 'constructor' || typeof descriptor.value !== 'function') return [];
      const method = descriptor.value as Method;
      const value: Method = function (...args) {
        calls += 1;
        return method.apply(this, args);
      };
      Object.defineProperty(prototype, name, { ...descriptor, value });
      return [() => Object.defineProperty(prototype, name, descriptor)];
    }),
  );
  await during().finally(() => {
    for (const restore of originals) restore();
  });
  return calls;
}
