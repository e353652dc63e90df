import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Call {
  /** The last part of its path, like `poll`. */
  readonly name: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Front {
  readonly url: string;
  /** All that came, also while the server seemed to be away. */
  readonly calls: Call[];
  /** Every connection ends without an answer. */
  seemsAway: boolean;
  /** Every result is answered with a page of this status; null: by the server. */
  pageStatus: number | null;
  close(): Promise<void>;
}

/** Stands before a server, hears what workers say to it, and can make it seem to be away. */
export async function openFront(serverUrl: string): Promise<Front> {
  const server = createServer((request, response) => {
    void read(request).then(async (body) => {
      const path = request.url ?? '';
      front.calls.push({
        name: path.split('/').at(-1) ?? '',
        body: JSON.parse(body) as Call['body'],
      });
      if (front.seemsAway) {
        request.socket.destroy();
        return;
      }
      if (front.pageStatus !== null && path.endsWith('/result')) {
        response.writeHead(front.pageStatus, { 'content-type': 'text/html' }).end('<html></html>');
        return;
      }
      // A poll that nobody waits for any more must not take a task.
      const leaving = new AbortController();
      response.on('close', () => leaving.abort());
      const headers = { 'content-type': 'application/json' };
      const forwarded = { method: 'POST', headers, body, signal: leaving.signal };
      const answer = await fetch(`${serverUrl}${path}`, forwarded).catch(() => null);
      if (answer !== null) response.writeHead(answer.status, headers).end(await answer.text());
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const front: Front = {
    url: `http://127.0.0.1:${port}`,
    calls: [],
    seemsAway: false,
    pageStatus: null,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
  return front;
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
