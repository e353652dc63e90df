/** What one server takes on its sockets, whoever is at the other end. */
export interface ConnectionLimits {
  readonly maxConnections: number;
  /** Besides those: they are answered that there are too many, and health checks as ever. */
  readonly sparePlaces: number;
  /** For the headers to arrive, also the first of a connection. */
  readonly headersMs: number;
  /** For the whole request, a body that drips included. */
  readonly requestMs: number;
  readonly checkEveryMs: number;
  /** At once, one behind the other: each would wait with all that belongs to it. */
  readonly openRequests: number;
  /** For an answer to have its turn. Longer than anybody may wait for news; behind an event stream it never comes. */
  readonly turnMs: number;
  /** In all, before a connection is closed after its answer, so that balancers can move it. */
  readonly requests: number;
  readonly headers: number;
  /** Event streams at once, of all callers and of one API key. */
  readonly listeners: number;
  readonly listenersPerKey: number;
}

export const connectionLimits: ConnectionLimits = {
  maxConnections: 10_000,
  sparePlaces: 100,
  headersMs: 20_000,
  requestMs: 60_000,
  checkEveryMs: 5_000,
  openRequests: 100,
  turnMs: 120_000,
  requests: 100_000,
  headers: 100,
  listeners: 4_000,
  listenersPerKey: 500,
};
