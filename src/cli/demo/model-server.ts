import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Model {
  readonly name: string;
  /** Of all calls. */
  readonly share: number;
  readonly minMs: number;
  readonly maxMs: number;
}

/** What a worker sends, and all that the stand-in looks at. */
export interface ModelCall {
  readonly model: string;
  readonly prompt: string;
  readonly attempt: number;
}

export interface ModelServer {
  readonly url: string;
  close(): Promise<void>;
}

export interface ModelServerOptions {
  readonly models: readonly Model[];
  /** Of first attempts, this share is answered with 503. */
  readonly failureShare: number;
  /** In [0, 1). */
  readonly random?: () => number;
}

/** Stands in for the service that tasks call: slow, and now and then not there. */
export async function startModelServer(options: ModelServerOptions): Promise<ModelServer> {
  const { models, failureShare, random = Math.random } = options;
  const byName = new Map(models.map((model) => [model.name, model]));
  const server = createServer((request, response) => {
    void readCall(request).then(({ model: name, prompt, attempt }) => {
      const model = byName.get(name);
      const fails = attempt === 1 && random() < failureShare;
      const answer = (status: number, body: object) => {
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(JSON.stringify(body));
      };
      if (model === undefined) {
        answer(404, { error: `there is no model ${name}` });
        return;
      }
      setTimeout(
        () => {
          if (fails) answer(503, { error: 'overloaded' });
          else answer(200, { text: `${name} on "${prompt}"` });
        },
        model.minMs + random() * (model.maxMs - model.minMs),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function readCall(request: IncomingMessage): Promise<ModelCall> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString()) as ModelCall;
}
