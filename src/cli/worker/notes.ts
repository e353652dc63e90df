export function waitingNote(url: string): string {
  return `Waiting for a server at ${url}; "sluice serve" starts one.`;
}

export function drainNote(drainTimeout: number): string {
  return `Draining: what runs has ${drainTimeout} s to finish. A second signal ends it at once.`;
}
