/** A `Request` does not say who is connected: the server that made it may know. */
const peers = new WeakMap<Request, string>();

export function notePeer(request: Request, address: string | undefined): void {
  if (address !== undefined) peers.set(request, address);
}

/** Null: not known. */
export function peerOf(request: Request): string | null {
  return peers.get(request) ?? null;
}
