import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface SlowLine {
  readonly url: string;
  /** Of the connections that there are: a new one is as quick as ever. */
  slowDown(): void;
  /** What was sent comes now, whether or not anybody still waits for the answer. */
  deliver(): Promise<void>;
  close(): void;
}

/** Stands between a client and a server. What was sent over one connection can come very late. */
export async function openSlowLine(url: string): Promise<SlowLine> {
  const target = new URL(url);
  const open = new Set<Socket>();
  const slow = new Map<Socket, Buffer[]>();
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    open.add(far);
    near.on('data', (data) => {
      const late = slow.get(far);
      if (late === undefined) far.write(data);
      else late.push(data);
    });
    far.on('data', (data) => near.write(data));
    for (const socket of [near, far]) socket.on('error', () => undefined);
    far.on('close', () => near.destroy());
    near.on('close', () => {
      if (!slow.has(far)) far.destroy();
      open.delete(far);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const ours = new URL(url);
  ours.hostname = '127.0.0.1';
  ours.port = String((server.address() as AddressInfo).port);
  return {
    url: ours.href,
    slowDown: () => {
      for (const far of open) slow.set(far, []);
    },
    deliver: async () => {
      const gone = [...slow.keys()].map((far) => once(far, 'close'));
      for (const [far, late] of slow) far.end(Buffer.concat(late));
      await Promise.all(gone);
    },
    close: () => {
      for (const far of [...open, ...slow.keys()]) far.destroy();
      server.close();
    },
  };
}
