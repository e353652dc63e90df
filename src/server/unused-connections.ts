import type { Socket } from 'node:net';
import type { App } from './app-parts.js';

/**
 * Browsers and fetch open connections ahead of need. Node takes one that has not carried a request
 * yet for a busy one, and closing the server would wait a minute for it.
 */
export function closeUnusedConnections(app: App): void {
  const unused = new Set<Socket>();
  app.server.on('connection', (socket) => {
    unused.add(socket);
    socket.once('close', () => unused.delete(socket));
  });
  app.server.on('request', ({ socket }) => {
    unused.delete(socket);
  });
  app.addHook('preClose', (done) => {
    for (const socket of unused) socket.destroy();
    done();
  });
}
