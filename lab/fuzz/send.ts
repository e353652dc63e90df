import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import type { FuzzRequest } from './requests.js';

export interface FuzzAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly tookMs: number;
}

/** Long enough for the slowest machine; nothing here asks a server to wait. */
const patienceMs = 60_000;

/** Over real sockets, as it is: `fetch` would put an address in order first. */
export class Sender implements Disposable {
  readonly #base: URL;
  readonly #agent: Agent;

  constructor(base: string, connections: number) {
    this.#base = new URL(base);
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  async send(request: Omit<FuzzRequest, 'route'>): Promise<FuzzAnswer> {
    try {
      return await this.#once(request);
    } catch (error) {
      // The server closed an idle connection just as it was used again.
      if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error;
      return this.#once(request);
    }
  }

  #once({
    method,
    url,
    headers,
    body,
    isChunked,
  }: Omit<FuzzRequest, 'route'>): Promise<FuzzAnswer> {
    const beganMs = performance.now();
    return new Promise((resolve, reject) => {
      const outgoing = httpRequest({
        host: this.#base.hostname,
        port: this.#base.port,
        agent: this.#agent,
        method,
        path: url,
        timeout: patienceMs,
        headers: {
          ...Object.fromEntries(headers),
          ...(body === null || isChunked ? {} : { 'content-length': body.length }),
          ...(body !== null && isChunked ? { 'transfer-encoding': 'chunked' } : {}),
        },
      });
      outgoing.on('error', reject);
      outgoing.on('timeout', () => outgoing.destroy(new Error('There was no answer')));
      outgoing.on('response', (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks).toString(),
            tookMs: performance.now() - beganMs,
          }),
        );
      });
      outgoing.end(body);
    });
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}
