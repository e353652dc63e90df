import { SluiceError } from '../domain/errors.js';

/** The same API, every call of which is refused once it is closed. */
export function untilClosed<Api extends object>(api: Api, isClosed: () => boolean): Api {
  const calls = new Map<string | symbol, unknown>();
  return new Proxy(api, {
    get(target, name) {
      const known = calls.get(name);
      if (known !== undefined) return known;
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      const call = (...given: readonly unknown[]): unknown => {
        // Not a call: the same API in somebody's name, whose calls are refused likewise.
        if (name === 'onBehalfOf') {
          return untilClosed(Reflect.apply(member, target, given) as object, isClosed);
        }
        return isClosed() ? Promise.reject(closedError()) : Reflect.apply(member, target, given);
      };
      calls.set(name, call);
      return call;
    },
  });
}

export function closedError(): SluiceError {
  return new SluiceError(
    'closed',
    'This Sluice is closed: close() was called, or its "await using" block ended. Open another one.',
  );
}
