import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface HeldLine {
  readonly url: string;
  /** The answer to a request with this text in it, that is under way, does not come until `letGo`. */
  hold(text: string): boolean;
  /** The next request with this text in it, and what is asked after it, comes when it is let go. */
  holdFrom(text: string): Promise<void>;
  /** Nothing passes any more, either way, and nothing is closed: new connections hear nothing either. */
  freeze(): void;
  letGo(): void;
  /** The connection on which a request with this text is under way ends here; the server goes on. */
  cut(text: string): boolean;
  close(): Promise<void>;
}

interface Pair {
  readonly near: Socket;
  readonly far: Socket;
  /** What was sent since the last answer. */
  asked: string;
  readonly kept: Buffer[];
}

/** Connections to a server whose answers can be kept back, one by one. */
export async function openHeldLine(url: string): Promise<HeldLine> {
  const target = new URL(url);
  const pairs = new Set<Pair>();
  let keepsRequests = false;
  let isFrozen = false;
  let awaited: { readonly text: string; readonly come: () => void } | null = null;
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    const pair: Pair = { near, far, asked: '', kept: [] };
    pairs.add(pair);
    if (isFrozen) far.pause();
    for (const socket of [near, far]) {
      socket.on('error', () => undefined);
      socket.on('close', () => {
        pairs.delete(pair);
        near.destroy();
        far.destroy();
      });
    }
    near.on('data', (data) => {
      pair.asked += data.toString('latin1');
      if (awaited !== null && pair.asked.includes(awaited.text)) {
        keepsRequests = true;
        awaited.come();
        awaited = null;
      }
      if (keepsRequests) pair.kept.push(data);
      else far.write(data);
    });
    far.on('data', (data) => {
      pair.asked = '';
      near.write(data);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const ours = new URL(url);
  ours.hostname = '127.0.0.1';
  ours.port = String((server.address() as AddressInfo).port);
  const find = (text: string) => [...pairs].filter(({ asked }) => asked.includes(text));
  return {
    url: ours.href,
    hold: (text) => {
      const found = find(text);
      for (const { far } of found) far.pause();
      return found.length > 0;
    },
    holdFrom: (text) =>
      new Promise((come) => {
        awaited = { text, come };
      }),
    freeze: () => {
      keepsRequests = true;
      isFrozen = true;
      for (const { far } of pairs) far.pause();
    },
    letGo: () => {
      keepsRequests = false;
      isFrozen = false;
      for (const { far, kept } of pairs) {
        for (const data of kept.splice(0)) far.write(data);
        far.resume();
      }
    },
    cut: (text) => {
      const found = find(text);
      for (const { near } of found) near.resetAndDestroy();
      return found.length > 0;
    },
    close: async () => {
      for (const { near, far } of pairs) {
        near.destroy();
        far.destroy();
      }
      server.close();
      await once(server, 'close');
    },
  };
}
