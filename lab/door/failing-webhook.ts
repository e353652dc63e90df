import { once } from 'node:events';
import { createServer } from 'node:http';
import { getFreePort } from '../../test/support/services/free-port.js';

export interface FailingWebhook extends AsyncDisposable {
  readonly url: string;
  /** When each call came. */
  readonly calledAtMs: readonly number[];
}

/** Somebody who is asked for workers and always fails. */
export async function startFailingWebhook(): Promise<FailingWebhook> {
  const calledAtMs: number[] = [];
  const port = await getFreePort();
  const server = createServer((request, response) => {
    calledAtMs.push(performance.now());
    request.resume();
    response.writeHead(500).end();
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${port}/scale`,
    calledAtMs,
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
