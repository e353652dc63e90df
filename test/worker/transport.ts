import type { SluiceApi } from '../../src/protocol/api.js';
import type { WorkerApi } from '../../src/protocol/workers-api.js';

/** A real engine, and a way from a worker to it that can be cut. */
export interface Transport {
  /** What workers and clients talk to. */
  readonly api: SluiceApi;
  /** No call arrives until `restore`. */
  cut(): Promise<void>;
  restore(): Promise<void>;
  close(): Promise<void>;
}

/** The same way, with one call replaced. */
export function withCall<Name extends keyof WorkerApi>(
  api: SluiceApi,
  name: Name,
  replace: (call: WorkerApi[Name]) => WorkerApi[Name],
): SluiceApi {
  // Looked up anew at each call: the way may have been cut meanwhile.
  const call = (...args: unknown[]): unknown => Reflect.apply(api[name], api, args);
  const replaced = replace(call as WorkerApi[Name]);
  return new Proxy(api, {
    get: (target, key) => {
      if (key === name) return replaced;
      const member: unknown = Reflect.get(target, key);
      return typeof member === 'function' ? (member.bind(target) as unknown) : member;
    },
  });
}

/** Shorter terms than the server's own: it is the worker's side that is looked at. */
export function withTerms(
  api: SluiceApi,
  terms: { readonly heartbeatIntervalMs: number; readonly leaseMs: number },
): SluiceApi {
  return withCall(api, 'register', (register) => async (registration) => ({
    ...(await register(registration)),
    ...terms,
  }));
}
