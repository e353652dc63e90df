export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly patienceMs: number;
  readonly signal: AbortSignal;
}

/** Posts JSON. Null: it was answered 2xx; else what went wrong, in a sentence without the address. */
export async function post(request: Post): Promise<string | null> {
  const { url, headers, body, patienceMs, signal } = request;
  const late = AbortSignal.timeout(patienceMs);
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
      // What is signed for one address is not for another.
      redirect: 'manual',
      signal: AbortSignal.any([signal, late]),
    });
    // Not read: nobody knows how long it is.
    await response.body?.cancel();
    return response.ok ? null : `The webhook answered ${response.status}.`;
  } catch (error) {
    return late.aborted
      ? `The webhook did not answer in ${patienceMs / 1000} s.`
      : unreachableText(error);
  }
}

/** The code alone: a message may hold the address, and that a password. */
function unreachableText(error: unknown): string {
  const { cause } = error as { readonly cause?: NodeJS.ErrnoException };
  return `The webhook can't be reached: ${cause?.code ?? 'it does not answer'}.`;
}
