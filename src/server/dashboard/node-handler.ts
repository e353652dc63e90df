import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { FetchHandler } from './create-dashboard.js';
import { notePeer } from './peer.js';
import { refusal } from './refusal.js';
import { webStreamOf } from './web-stream.js';

/** As Express leaves a request: without its mount path, and perhaps with its body read. */
type NodeRequest = IncomingMessage & { readonly originalUrl?: string; readonly body?: unknown };

export type NodeHandler = (
  request: NodeRequest,
  response: ServerResponse,
  next?: (error: unknown) => void,
) => Promise<void>;

/** A fetch handler for Express, Fastify, Koa and `node:http`. */
export function toNodeHandler(handler: FetchHandler): NodeHandler {
  return async (request, response, next) => {
    try {
      const gone = new AbortController();
      response.once('close', () => gone.abort());
      const asked = toFetchRequest(request, gone.signal);
      if (asked !== null) notePeer(asked, request.socket.remoteAddress);
      await send(asked === null ? notFetched(request) : await handler(asked), response);
    } catch (error) {
      // Who has left needs no answer.
      if (response.headersSent || response.destroyed) response.destroy();
      else if (next === undefined) response.writeHead(500).end();
      else next(error);
    }
  };
}

/** What `fetch` forbids. */
const notFetchedMethods = new Set(['CONNECT', 'TRACE', 'TRACK']);

function notFetched({ method }: NodeRequest): Response {
  return refusal('invalid_request', `This is not a good address for ${method ?? 'a request'}`);
}

/** Null: its method or its address is none that a `Request` may have. */
function toFetchRequest(request: NodeRequest, signal: AbortSignal): Request | null {
  const { method = 'GET', headers, url = '/', originalUrl = url } = request;
  const told = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((one): [string, string] => [name, one]),
  );
  const hasBody = method !== 'GET' && method !== 'HEAD';
  // Only the path of it counts; the host is in the headers as well.
  const base = `http://${headers.host ?? 'localhost'}`;
  if (!URL.canParse(originalUrl, base) || notFetchedMethods.has(method)) return null;
  const address = new URL(originalUrl, base);
  return new Request(address, {
    method,
    headers: told.filter(([name]) => !name.startsWith(':')),
    signal,
    ...(hasBody ? { body: bodyOf(request), duplex: 'half' } : {}),
  });
}

/** A body parser that came first has read the stream to its end. */
function bodyOf(request: NodeRequest): string | ReadableStream {
  if (request.body !== undefined && request.readableEnded) return JSON.stringify(request.body);
  // The server reads what is left of it, and then takes the next request of its connection.
  return webStreamOf(request, () => undefined);
}

async function send(answer: Response, response: ServerResponse): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body === null) {
    response.end();
    return;
  }
  response.flushHeaders();
  await pipeline(Readable.fromWeb(answer.body), response);
}
