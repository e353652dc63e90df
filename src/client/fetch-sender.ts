import type { Send } from './send.js';

/** For browsers and edge runtimes, which have no `node:http`. */
export function openFetchSender({ origin }: URL): Send {
  return async ({ method, path, headers, body, timeoutMs, signal }) => {
    const controller = new AbortController();
    const end = (why: string) => controller.abort(new Error(why));
    const onAbort = () => end('The call was aborted');
    const timer = setTimeout(end, timeoutMs, 'No answer came in time');
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      const response = await fetch(`${origin}${path}`, {
        method,
        headers,
        body: body ?? null,
        redirect: 'manual',
        signal: controller.signal,
      });
      return {
        status: response.status,
        text: await response.text(),
        location: response.headers.get('location') ?? undefined,
      };
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    }
  };
}
