import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { Logger } from '../runtime/log.js';
import { isConfined, reachesQueue, type Confinement } from '../domain/confinement.js';
import type { TaskId } from '../domain/ids.js';
import type { SluiceApi } from '../protocol/api.js';
import type { TaskEvent } from '../protocol/events.js';
import { statisticsToWire } from '../protocol/statistics-wire.js';
import { taskEventToWire } from '../protocol/tasks-wire.js';
import type { EventSource } from './ports.js';

export interface EventFilter {
  readonly queue: string | null;
  readonly taskId: TaskId | null;
  /** What the caller reaches. */
  readonly within: Confinement;
}

interface Listener {
  readonly response: ServerResponse;
  readonly filter: EventFilter;
}

const statisticsEveryMs = 1_000;
/** A reader that is further behind is cut off: it reconnects, and memory stays bounded. */
const maxUnreadBytes = 1024 * 1024;

export interface LiveEventsParts {
  readonly api: Pick<SluiceApi, 'getStatistics'>;
  readonly events: EventSource;
  readonly log: Logger;
}

/** Server-sent events. While nobody listens nothing is subscribed to and nothing is counted. */
export class LiveEvents {
  readonly #parts: LiveEventsParts;
  readonly #listeners = new Set<Listener>();
  #unsubscribe: (() => void) | null = null;
  #timer: NodeJS.Timeout | null = null;
  #counting = false;

  constructor(parts: LiveEventsParts) {
    this.#parts = parts;
  }

  /** Until its reader leaves, or the signal says that it has to. */
  add(reply: FastifyReply, filter: EventFilter, signal: AbortSignal): void {
    const response = reply.raw;
    const listener = { response, filter };
    response.writeHead(200, {
      ...(reply.getHeaders() as OutgoingHttpHeaders),
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    response.write('retry: 1000\n\n');
    response.once('close', () => this.#remove(listener));
    if (signal.aborted) end(listener);
    else signal.addEventListener('abort', () => end(listener), { once: true });
    this.#listeners.add(listener);
    this.#unsubscribe ??= this.#parts.events.subscribe((event) => this.#tell(event));
    this.#timer ??= setInterval(() => void this.#tellStatistics(), statisticsEveryMs);
  }

  #remove(listener: Listener): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size > 0) return;
    this.#unsubscribe?.();
    this.#unsubscribe = null;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #tell(event: TaskEvent): void {
    const concerned = [...this.#listeners].filter(({ filter }) => concerns(filter, event));
    if (concerned.length === 0) return;
    const text = frame('task', taskEventToWire(event));
    for (const { response } of concerned) write(response, text);
  }

  async #tellStatistics(): Promise<void> {
    if (this.#counting) return;
    this.#counting = true;
    try {
      const text = frame('stats', statisticsToWire(await this.#parts.api.getStatistics()));
      for (const { response, filter } of this.#listeners) {
        // They are of all queues.
        if (!isConfined(filter.within)) write(response, text);
      }
    } catch (error) {
      this.#parts.log.warn({ err: error }, 'no statistics for those who listen');
    } finally {
      this.#counting = false;
    }
  }
}

/** Its connection was promised to be kept alive: a server that stops would wait for it. */
function end({ response }: Listener): void {
  response.end(() => response.socket?.destroySoon());
}

function concerns(filter: EventFilter, event: TaskEvent): boolean {
  return (
    reachesQueue(filter.within, event.queue) &&
    (filter.queue === null || filter.queue === event.queue) &&
    (filter.taskId === null || filter.taskId === event.taskId)
  );
}

function frame(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

function write(response: ServerResponse, text: string): void {
  if (response.writableLength > maxUnreadBytes) response.destroy();
  else response.write(text);
}
