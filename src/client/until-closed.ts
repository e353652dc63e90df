import { SluiceError } from '../domain/errors.js';

/** The same API, every call of which is refused once it is closed. */
export function untilClosed<Api extends object>(api: Api, isClosed: () => boolean): Api {
  return new Proxy(api, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...given: readonly unknown[]): unknown =>
        isClosed() ? Promise.reject(closedError()) : Reflect.apply(member, target, given);
    },
  });
}

export function closedError(): SluiceError {
  return new SluiceError(
    'closed',
    'This Sluice is closed: close() was called, or its "await using" block ended. Open another one.',
  );
}
