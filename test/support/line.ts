import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface Line {
  readonly url: string;
  /** All connections end, and new ones are refused, while the server behind goes on. */
  cut(): void;
  mend(): void;
  /** All connections end, and new ones go to another port of this machine, until `mend`. */
  divert(port: number): void;
  close(): Promise<void>;
}

/** A TCP proxy to a server of this machine that can be cut or diverted without harming the server. */
export async function openLine(port: number): Promise<Line> {
  const sockets = new Set<Socket>();
  let target: number | null = port;
  const server = createServer((near) => {
    if (target === null) {
      near.destroy();
      return;
    }
    const far = connect(target, '127.0.0.1');
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far).pipe(near);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port: ours } = server.address() as AddressInfo;
  const turnTo = (newTarget: number | null) => {
    target = newTarget;
    for (const socket of sockets) socket.destroy();
  };
  const cut = () => turnTo(null);
  return {
    url: `redis://127.0.0.1:${String(ours)}`,
    cut,
    divert: turnTo,
    mend: () => {
      if (target !== port) turnTo(port);
    },
    close: async () => {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}
