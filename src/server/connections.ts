import type { Server as HttpServer, IncomingMessage, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { SluiceError } from '../domain/errors.js';
import { problemToWire } from '../protocol/problem-wire.js';
import type { App } from './app-parts.js';
import type { ConnectionLimits } from './connection-limits.js';
import { pathOf, problemContentType } from './problem.js';

interface Connection {
  /** One of the spare places: asked for health it answers, and it is closed after its answer. */
  readonly isSurplus: boolean;
  /** Answers go out in order: all but the first of these wait for their turn. */
  readonly open: Set<ServerResponse>;
  requests: number;
  latest: { readonly request: IncomingMessage; readonly response: ServerResponse } | null;
}

/** Never refused, so that whoever watches learns that the server lives. */
const health: ReadonlySet<string> = new Set([
  '/healthz',
  '/healthz/progress',
  '/readyz',
  '/metrics',
]);
const tellEveryMs = 10_000;
/** For the other side to read its answer before the connection goes. */
const lingerMs = 1_000;
/** For the first request of a connection that is new when the server closes. */
const unusedMs = 1_000;
const lookEveryMs = 10;

/** Every connection of a server, and what it may do. */
export class Connections {
  readonly #limits: ConnectionLimits;
  readonly #connections = new Map<Socket, Connection>();
  #toldAtMs = -Infinity;

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** What Node watches over by itself. */
  serverOptions() {
    const { headersMs, requestMs, checkEveryMs } = this.#limits;
    return {
      requestTimeout: requestMs,
      http: {
        headersTimeout: headersMs,
        connectionsCheckingInterval: checkEveryMs,
        // Refused below, as a problem document.
        requireHostHeader: false,
      },
    };
  }

  watch(app: App): void {
    const { server } = app;
    this.#closeUnused(app);
    const { maxConnections, sparePlaces, headers } = this.#limits;
    server.maxConnections = maxConnections + sparePlaces;
    // Node leaves out in silence what is more: one more tells.
    server.maxHeadersCount = headers + 1;
    server.on('connection', (socket) => this.#add(socket));
    server.on('drop', () => this.#tell(app));
    // Another expectation than 100-continue may be ignored, and Node would answer without a word.
    server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
      server.emit('request', request, response),
    );
    server.prependListener('request', (request, response) => this.#count(request, response));
    app.addHook('onRequest', ({ raw }, _reply, done) => {
      this.#refuseHeaders(raw);
      const connection = this.#connections.get(raw.socket);
      if (connection?.isSurplus === true && !health.has(pathOf(raw.url ?? ''))) {
        this.#tell(app);
        throw new SluiceError('refused', this.#tooMany(), { retryAfterSeconds: 1 });
      }
      done();
    });
    app.addHook('onSend', ({ raw }, reply, _payload, done) => {
      const connection = this.#connections.get(raw.socket);
      if (connection !== undefined && this.#isSpent(connection))
        reply.header('connection', 'close');
      done();
    });
  }

  /** Not even HTTP, too many headers, or too slow: there is no request that a route could answer. */
  refuseMalformed(error: Error, socket: Socket): void {
    const connection = this.#connections.get(socket);
    if (!socket.writable || connection === undefined || wouldBeMistaken(connection)) {
      socket.destroy();
      return;
    }
    socket.end(problemText(error));
    // The other side may never close its half.
    socket.resume();
    const lingering = setTimeout(() => socket.destroy(), lingerMs);
    socket.once('close', () => clearTimeout(lingering));
  }

  #add(socket: Socket): void {
    const isSurplus = this.#connections.size >= this.#limits.maxConnections;
    const open = new Set<ServerResponse>();
    this.#connections.set(socket, { isSurplus, open, requests: 0, latest: null });
    socket.once('close', () => {
      this.#connections.delete(socket);
      closeWaiting(open);
    });
  }

  /**
   * Browsers and fetch open connections ahead of need. Node takes one that has not carried a request
   * yet for a busy one, and closing the server would wait a minute for it. The request of a new one may be
   * on its way: it gets a second to arrive, once no more connections come.
   */
  #closeUnused(app: App): void {
    app.addHook('preClose', async () => {
      if (app.server.listening) await stopListening(app.server);
      const endsAtMs = performance.now() + unusedMs;
      while (this.#unused.length > 0 && performance.now() < endsAtMs) await delay(lookEveryMs);
      for (const socket of this.#unused) socket.destroy();
      // Node closes the idle connections next: only after it has read what arrived on them.
      await nextTurn();
    });
  }

  get #unused(): readonly Socket[] {
    return [...this.#connections]
      .filter(([, { requests }]) => requests === 0)
      .map(([socket]) => socket);
  }

  #count(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const connection = this.#connections.get(socket);
    if (connection === undefined) return;
    connection.open.add(response);
    connection.requests += 1;
    connection.latest = { request, response };
    response.once('close', () => connection.open.delete(response));
    // A refusal would wait behind all the others.
    if (connection.open.size > this.#limits.openRequests) socket.destroy();
    else if (response.socket === null) this.#awaitTurn(socket, response);
  }

  /** What it holds is not held for good by somebody who waits in front of it. */
  #awaitTurn(socket: Socket, response: ServerResponse): void {
    const waiting = setTimeout(() => socket.destroy(), this.#limits.turnMs);
    waiting.unref();
    response.once('socket', () => clearTimeout(waiting));
    response.once('close', () => clearTimeout(waiting));
  }

  #refuseHeaders({ rawHeaders, headers, httpVersion }: IncomingMessage): void {
    if (rawHeaders.length > 2 * this.#limits.headers) {
      const detail = `A request has at most ${this.#limits.headers} headers`;
      throw new SluiceError('headers_too_large', detail);
    }
    if (headers.host === undefined && httpVersion === '1.1') {
      throw new SluiceError('invalid_request', 'The Host header is missing');
    }
  }

  #isSpent({ isSurplus, requests }: Connection): boolean {
    return isSurplus || requests >= this.#limits.requests;
  }

  #tooMany(): string {
    return `This server has ${this.#limits.maxConnections} connections already and takes no more`;
  }

  /** Now and then: whoever comes in crowds must not fill the log. */
  #tell(app: App): void {
    const nowMs = performance.now();
    if (nowMs - this.#toldAtMs < tellEveryMs) return;
    this.#toldAtMs = nowMs;
    app.log.warn({ max_connections: this.#limits.maxConnections }, 'connections are refused');
  }
}

/**
 * Without closing idle connections, as the server's own `close` does. Right after the turn in which Node took
 * all connections that waited in the backlog: the system resets those that are left there.
 */
async function stopListening(server: HttpServer): Promise<void> {
  await nextTurn();
  NetServer.prototype.close.call(server);
}

/** For the answer to an earlier request; or the one to this request has begun. */
function wouldBeMistaken({ open, latest }: Connection): boolean {
  const isItsOwn = latest !== null && !latest.request.complete && !latest.response.headersSent;
  return open.size > (isItsOwn ? 1 : 0);
}

/**
 * With its connection Node closes the answer whose turn it is, and never those that wait behind it: whatever they hold
 * (room for bodies and answers, places of listeners) would be held for good.
 */
function closeWaiting(open: ReadonlySet<ServerResponse>): void {
  for (const response of open) {
    if (response.socket !== null) continue;
    response.destroy();
    response.emit('close');
  }
}

function problemText(error: Error): string {
  const [statusLine, refusal] = refusalOf(error);
  const body = JSON.stringify(problemToWire(refusal));
  return (
    `HTTP/1.1 ${statusLine}\r\nContent-Type: ${problemContentType}\r\n` +
    `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
  );
}

function refusalOf(error: Error) {
  switch ('code' in error ? error.code : undefined) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return [
        '408 Request Timeout',
        { code: 'request_timeout', detail: 'The request did not arrive in time' },
      ] as const;
    case 'HPE_HEADER_OVERFLOW':
      return [
        '431 Request Header Fields Too Large',
        { code: 'headers_too_large', detail: 'The address and the headers are too long' },
      ] as const;
    default:
      return [
        '400 Bad Request',
        { code: 'invalid_request', detail: 'The request is not well-formed HTTP' },
      ] as const;
  }
}
