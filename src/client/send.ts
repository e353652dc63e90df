/** One request to a server. */
export interface Outgoing {
  readonly method: string;
  /** From the root of the host, with its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /** The answer must be complete by then. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

export interface Incoming {
  readonly status: number;
  readonly text: string;
  readonly location: string | undefined;
}

/** Follows no redirect. Rejects when no complete answer came. */
export type Send = (request: Outgoing) => Promise<Incoming>;

/** Makes what sends requests to one server. There are two: `node:http` for Node, `fetch` for every other runtime. */
export type OpenSender = (server: URL) => Send;
