import { getHeapStatistics } from 'node:v8';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { SluiceError } from '../domain/errors.js';
import type { App } from './app-parts.js';

const tooLarge = 413;
/** Smaller ones are bounded by the connections. */
const smallBytes = 64 * 1024;
/** Measured: a byte of "[{},{}]" becomes 22 bytes of heap, and there is other work. */
const heapBytesPerByte = 32;

/** Those that are under way of one kind of callers. */
interface Room {
  bytes: number;
}

/**
 * Large bodies that are read or worked on at once: however many send them, they fit into memory. Those of workers have
 * as much room besides: heartbeats and results of many tasks are large, and whoever submits must not hold them up.
 */
export class BodyBudget {
  readonly #maxBytes: number;
  readonly #ofWorkers: Room = { bytes: 0 };
  readonly #ofOthers: Room = { bytes: 0 };

  /** The largest request passes twice at least. */
  constructor(
    requestBytes: number,
    maxBytes = getHeapStatistics().heap_size_limit / heapBytesPerByte,
  ) {
    this.#maxBytes = Math.max(2 * requestBytes, maxBytes);
  }

  /** Before the body is read. */
  watch(app: App): void {
    app.addHook('preParsing', (request, reply, payload, done) => {
      refuseEncoding(request);
      const bytes = announcedBytes(request);
      const isOfWorker = request.routeOptions.config.scope === 'worker';
      const room = isOfWorker ? this.#ofWorkers : this.#ofOthers;
      if (bytes > smallBytes) this.#reserve(room, bytes, reply);
      done(null, payload);
    });
    // A connection that is closed while its client still writes takes the answer with it.
    app.addHook('onSend', ({ headers }, reply, _payload, done) => {
      const isWorthReading = Number(headers['content-length']) <= this.#maxBytes;
      if (reply.statusCode === tooLarge && isWorthReading) reply.removeHeader('connection');
      done();
    });
  }

  #reserve(room: Room, bytes: number, reply: FastifyReply): void {
    // Whoever left while the key was looked up sends nothing, and its close is over: nothing would free the room.
    if (reply.raw.closed || reply.raw.destroyed) return;
    if (room.bytes + bytes > this.#maxBytes) {
      const detail = 'Too many large requests are under way; this one was not read';
      throw new SluiceError('refused', detail, { retryAfterSeconds: 1 });
    }
    room.bytes += bytes;
    reply.raw.once('close', () => {
      room.bytes -= bytes;
    });
  }
}

/** A few bytes could become gigabytes: nothing is unpacked. */
function refuseEncoding({ headers }: FastifyRequest): void {
  const encoding = headers['content-encoding'];
  if (encoding === undefined || encoding.trim().toLowerCase() === 'identity') return;
  throw new SluiceError(
    'unsupported_media_type',
    'A content-encoding is not supported: send the body as it is',
  );
}

/** Without a length it may become as long as its route allows; more than allowed is never read. */
function announcedBytes({ headers, routeOptions }: FastifyRequest): number {
  const limit = routeOptions.bodyLimit;
  if (headers['transfer-encoding'] !== undefined) return limit;
  const length = Number(headers['content-length'] ?? 0);
  return length > limit ? 0 : length;
}
