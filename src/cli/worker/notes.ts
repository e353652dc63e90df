/** How long a server that does not answer is waited for before the note says that there is none. */
const askMs = 1_000;

/** Why a worker waits: nothing answers there, or a server does and is not ready. */
export async function waitingNote(url: string): Promise<string> {
  try {
    const ready = await fetch(new URL('/readyz', url), { signal: AbortSignal.timeout(askMs) });
    return `Waiting: the server at ${url} answers, but is not ready (${ready.status} of /readyz).`;
  } catch {
    return `Waiting for a server at ${url}; "sluice serve" starts one.`;
  }
}

export function drainNote(drainTimeout: number): string {
  return `Draining: what runs has ${drainTimeout} s to finish. A second signal ends it at once.`;
}
