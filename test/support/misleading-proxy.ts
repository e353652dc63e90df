import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface MisleadingProxy {
  readonly port: number;
  /** How many requests it answered. */
  readonly answered: number;
  close(): Promise<void>;
}

/** What a load balancer or an access proxy says in the server's place. */
const statuses = [404, 401, 403, 400];

/** Answers every request with an HTML page and one of the 4xx statuses in turn, as a proxy without its server does. */
export async function startMisleadingProxy(): Promise<MisleadingProxy> {
  let answered = 0;
  const server = createServer((request, response) => {
    request.resume();
    request.once('end', () => {
      const status = statuses[answered % statuses.length] ?? 404;
      answered += 1;
      response.writeHead(status, { 'content-type': 'text/html' });
      response.end(`<html><body><h1>${status}</h1></body></html>`);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    get answered() {
      return answered;
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
