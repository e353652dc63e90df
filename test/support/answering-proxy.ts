import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** What a proxy answers in the server's place. */
export interface ForeignAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The body is announced as longer, and the connection is cut after it. */
  readonly isCut?: boolean;
  /** It is given so much later. */
  readonly delayMs?: number;
  /** The server does what it was asked to; only its answer is replaced. */
  readonly afterwards?: boolean;
}

type Judge = (path: string) => ForeignAnswer | null;

export const html = (status: number): ForeignAnswer => ({
  status,
  headers: { 'content-type': 'text/html' },
  body: `<html><body><h1>${status}</h1></body></html>`,
});

/** An HTTP proxy in front of a server, which answers some requests by itself. */
export class AnsweringProxy implements AsyncDisposable {
  readonly #target: URL;
  readonly #server = createServer((incoming, response) => void this.#handle(incoming, response));
  /** Null: the server answers. */
  judge: Judge = () => null;
  /** As `judge`, of what the request holds. */
  judgeBody: (path: string, body: string) => ForeignAnswer | null = () => null;
  answered = 0;

  private constructor(target: string) {
    this.#target = new URL(target);
  }

  static async start(target: string): Promise<AnsweringProxy> {
    const proxy = new AnsweringProxy(target);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    if (this.#server.listening) await once(this.#server, 'close');
  }

  /** Cuts the connections of those who wait for an answer. */
  hangUp(): void {
    this.#server.closeAllConnections();
  }

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = '' } = incoming;
    incoming.on('error', () => response.destroy());
    const body = Buffer.concat(await incoming.toArray().catch(() => []));
    const foreign = this.judge(url) ?? this.judgeBody(url, body.toString());
    if (foreign !== null) this.answered += 1;
    if (foreign !== null && foreign.afterwards !== true) {
      if (foreign.delayMs !== undefined) await delay(foreign.delayMs, undefined, { ref: false });
      give(foreign, response);
      return;
    }
    const outgoing = this.#forward(incoming, (answer) => {
      if (foreign === null) {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.on('error', () => response.destroy()).pipe(response);
      } else {
        answer.resume().on('end', () => give(foreign, response));
      }
    });
    outgoing.on('error', () => response.destroy());
    response.on('close', () => outgoing.destroy());
    outgoing.end(body);
  }

  #forward({ method, url, headers }: IncomingMessage, onAnswer: (answer: IncomingMessage) => void) {
    const { hostname, port } = this.#target;
    return request({ hostname, port, method, path: url, headers }, onAnswer);
  }
}

function give({ status, headers = {}, body = '', isCut }: ForeignAnswer, response: ServerResponse) {
  if (isCut !== true) {
    response.writeHead(status, headers).end(body);
    return;
  }
  response.writeHead(status, { ...headers, 'content-length': String(body.length + 100) });
  response.write(body, () => response.destroy());
}
