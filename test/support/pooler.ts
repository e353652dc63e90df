import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';

/** Passes everything on but the process behind the connection, for which a pooler names one of its own. */
export async function startPooler(databaseUrl: string): Promise<AsyncDisposable & { url: string }> {
  const url = new URL(databaseUrl);
  const { hostname, port } = url;
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    client.on('error', () => upstream.destroy()).pipe(upstream);
    upstream.on('error', () => client.destroy()).on('data', (data) => client.write(renamed(data)));
    upstream.on('end', () => client.end());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: url.href,
    [Symbol.asyncDispose]: async () => {
      server.close();
      await once(server, 'close');
    },
  };
}

/** BackendKeyData: "K", the length of 12 bytes, the process, and the key to cancel with. */
function renamed(data: Buffer): Buffer {
  const at = data.indexOf(Buffer.from([0x4b, 0, 0, 0, 12]));
  if (at >= 0) data.writeInt32BE(data.readInt32BE(at + 5) + 1, at + 5);
  return data;
}
