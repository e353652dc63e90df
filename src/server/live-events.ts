import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyReply } from 'fastify';
import { isConfined, reachesQueue, type Confinement } from '../domain/confinement.js';
import { SluiceError } from '../domain/errors.js';
import type { TaskId } from '../domain/ids.js';
import type { SluiceApi } from '../protocol/api.js';
import type { TaskEvent } from '../protocol/events.js';
import { statisticsToWire } from '../protocol/statistics-wire.js';
import { taskEventToWire } from '../protocol/tasks-wire.js';
import type { Logger } from '../runtime/log.js';
import type { ConnectionLimits } from './connection-limits.js';
import type { Following } from '../engine/cluster-events.js';
import type { EventSource } from './ports.js';

export interface EventFilter {
  readonly queue: string | null;
  readonly taskId: TaskId | null;
  /** What the caller reaches. A confined caller's right to `taskId` was checked before. */
  readonly within: Confinement;
}

interface Listener {
  readonly response: ServerResponse;
  readonly channel: Channel;
  readonly keyId: string | null;
  /** Events that it was not sent, because it had not read those before. */
  missed: number;
  /** Since when it reads too slowly; null: it does not. */
  slowSinceMs: number | null;
}

/** All listeners with one filter: each event is encoded once, and each batch is one buffer for all. */
interface Channel {
  readonly filter: EventFilter;
  /** The same for all confinements that reach the same. */
  readonly confinedTo: string;
  /** False: its listeners named a queue that they do not reach. */
  readonly reachesItsQueue: boolean;
  readonly listeners: Set<Listener>;
  frames: string[];
  bytes: number;
  /** Events beyond what one batch carries. */
  missed: number;
}

type ChannelsByTask = Map<TaskId | null, Channel[]>;

interface Batch {
  readonly channel: Channel;
  readonly events: number;
  readonly missed: number;
  readonly buffer: Buffer;
}

/** Queues of which it is remembered which channels reach them. */
const maxRemembered = 10_000;
const statisticsEveryMs = 1_000;
const batchEveryMs = 250;
/**
 * A batch that took n writes is followed by a pause of 3n ms: at most 333 writes a second. A write costs about
 * 40 µs of CPU with the kernel's share, so listeners cost at most 1.5 % of a core, however many there are.
 */
const msPerWrite = 3;
/** To all listeners together. One that gets less than all is told how many events it missed. */
const bytesPerSecond = 4 * 1024 * 1024;
const leastBatchBytes = 2 * 1024;
/** A reader that is further behind gets no more events until it has read these. */
const maxUnreadBytes = 256 * 1024;
/** One that is behind for so long is cut off. */
const slowForMs = 30_000;
/** Written before other requests get their turn. */
const writesAtOnce = 50;

export interface LiveEventsParts {
  readonly api: Pick<SluiceApi, 'getStatistics'>;
  readonly events: EventSource;
  readonly log: Logger;
  readonly connections: Pick<ConnectionLimits, 'listeners' | 'listenersPerKey'>;
}

/** Server-sent events, in batches. While nobody listens nothing is subscribed to and nothing is counted. */
export class LiveEvents {
  readonly #parts: LiveEventsParts;
  readonly #listeners = new Set<Listener>();
  /** By queue, then by task, null being all of them; then one for each confinement. */
  readonly #channels = new Map<string | null, ChannelsByTask>();
  /** By queue: those channels of all queues and tasks that reach it. A check of each for every event would cost too much. */
  readonly #reaching = new Map<string, readonly Channel[]>();
  readonly #perKey = new Map<string, number>();
  #following: Following | null = null;
  #timer: NodeJS.Timeout | null = null;
  #statistics: string | null = null;
  /** How many writes the last batches to all listeners took. */
  #lastWrites = 0;
  /** The most that all listeners get together in their next batches. */
  #bytesForAll = 0;
  /** The most that each listener gets in its next batch. */
  #batchBytes = leastBatchBytes;
  #countedAtMs = -Infinity;
  #counting = false;

  constructor(parts: LiveEventsParts) {
    this.#parts = parts;
  }

  /** Before the reply becomes a stream. */
  refuseTooMany(keyId: string | null): void {
    const { listeners, listenersPerKey } = this.#parts.connections;
    if (this.#listeners.size >= listeners) {
      throw refusal(`This server has ${listeners} listeners already and takes no more`);
    }
    if (keyId !== null && (this.#perKey.get(keyId) ?? 0) >= listenersPerKey) {
      throw refusal(`This key has ${listenersPerKey} listeners already and gets no more`);
    }
  }

  /** Until its reader leaves, or the signal says that it has to. */
  add(reply: FastifyReply, filter: EventFilter, signal: AbortSignal): void {
    const response = reply.raw;
    if (response.closed || response.destroyed) return;
    const keyId = reply.request.holder?.owner ?? null;
    const listener: Listener = {
      response,
      channel: this.#channelOf(filter),
      keyId,
      missed: 0,
      slowSinceMs: null,
    };
    // Without chunks, whose frames would be made for each listener: the stream ends with its connection.
    response.useChunkedEncodingByDefault = false;
    response.writeHead(200, {
      ...(reply.getHeaders() as OutgoingHttpHeaders),
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      connection: 'close',
    });
    response.write('retry: 1000\n\n');
    response.once('close', () => this.#remove(listener));
    if (signal.aborted) response.end();
    else signal.addEventListener('abort', () => response.end(), { once: true });
    this.#listeners.add(listener);
    listener.channel.listeners.add(listener);
    if (keyId !== null) this.#perKey.set(keyId, (this.#perKey.get(keyId) ?? 0) + 1);
    if (this.#following === null) this.#following = this.#follow();
    else this.#following.changed();
    this.#timer ??= this.#schedule();
    this.#shareBytes();
  }

  #follow(): Following {
    return this.#parts.events.follow({
      hear: (event) => this.#note(event),
      missed: (count) => {
        for (const channel of this.#allChannels()) channel.missed += count;
      },
      followed: () => this.#allChannels().map(({ filter }) => filter),
    });
  }

  #allChannels(): Channel[] {
    return [...this.#channels.values()].flatMap((ofQueue) => [...ofQueue.values()].flat());
  }

  #remove(listener: Listener): void {
    const { channel, keyId } = listener;
    this.#listeners.delete(listener);
    channel.listeners.delete(listener);
    if (channel.listeners.size === 0) this.#forget(channel);
    if (keyId !== null) {
      const left = (this.#perKey.get(keyId) ?? 1) - 1;
      if (left === 0) this.#perKey.delete(keyId);
      else this.#perKey.set(keyId, left);
    }
    if (this.#listeners.size > 0) return;
    this.#following?.stop();
    this.#following = null;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#lastWrites = 0;
  }

  #channelOf(filter: EventFilter): Channel {
    const { queue, taskId, within } = filter;
    const ofQueue = this.#channels.get(queue) ?? new Map<TaskId | null, Channel[]>();
    this.#channels.set(queue, ofQueue);
    const ofTask = ofQueue.get(taskId) ?? [];
    ofQueue.set(taskId, ofTask);
    const confinedTo = JSON.stringify(within);
    const known = ofTask.find((channel) => channel.confinedTo === confinedTo);
    if (known !== undefined) return known;
    const gathered = { frames: [], bytes: 0, missed: 0 };
    const reachesItsQueue = queue === null || reachesQueue(within, queue);
    const listeners = new Set<Listener>();
    const channel = { filter, confinedTo, reachesItsQueue, listeners, ...gathered };
    ofTask.push(channel);
    this.#reaching.clear();
    return channel;
  }

  #forget(channel: Channel): void {
    const { queue, taskId } = channel.filter;
    const ofQueue = this.#channels.get(queue);
    const left = (ofQueue?.get(taskId) ?? []).filter((one) => one !== channel);
    if (left.length > 0) ofQueue?.set(taskId, left);
    else ofQueue?.delete(taskId);
    if (ofQueue?.size === 0) this.#channels.delete(queue);
    this.#reaching.clear();
  }

  /** Costs the same for one listener and for thousands. Called 90,000 times a second at 30,000 tasks a second. */
  #note(event: TaskEvent): void {
    const { queue, taskId } = event;
    const ofAll = this.#channels.get(null);
    const ofQueue = this.#channels.get(queue);
    let text: string | null = null;
    if (ofAll !== undefined) {
      text = this.#noteInEach(this.#channelsReaching(queue, ofAll.get(null)), event, text);
      text = this.#noteInEach(ofAll.get(taskId), event, text);
    }
    if (ofQueue === undefined) return;
    text = this.#noteInEach(ofQueue.get(null), event, text);
    this.#noteInEach(ofQueue.get(taskId), event, text);
  }

  #channelsReaching(queue: string, channels: readonly Channel[] | undefined) {
    if (channels === undefined) return undefined;
    const known = this.#reaching.get(queue);
    if (known !== undefined) return known;
    const found = channels.filter(({ filter }) => reachesQueue(filter.within, queue));
    if (this.#reaching.size >= maxRemembered) this.#reaching.clear();
    this.#reaching.set(queue, found);
    return found;
  }

  /** Answers the encoded event as soon as a channel needed it. */
  #noteInEach(channels: readonly Channel[] | undefined, event: TaskEvent, encoded: string | null) {
    if (channels === undefined) return encoded;
    let text = encoded;
    for (const channel of channels) {
      if (!channel.reachesItsQueue) continue;
      if (channel.bytes >= this.#batchBytes) {
        channel.missed += 1;
        continue;
      }
      text ??= frame('task', taskEventToWire(event));
      channel.frames.push(text);
      channel.bytes += text.length;
    }
    return text;
  }

  /** After every change of the number of listeners. */
  #shareBytes(): void {
    this.#batchBytes = Math.max(leastBatchBytes, this.#bytesForAll / this.#listeners.size);
  }

  #schedule(): NodeJS.Timeout {
    const intervalMs = Math.max(batchEveryMs, this.#lastWrites * msPerWrite);
    this.#bytesForAll = (bytesPerSecond * intervalMs) / 1_000;
    this.#shareBytes();
    return setTimeout(() => void this.#sendAll(), intervalMs);
  }

  async #sendAll(): Promise<void> {
    const own = this.#timer;
    void this.#count();
    let writes = 0;
    try {
      const batches = this.#takeBatches();
      for (const batch of batches) {
        for (const listener of batch.channel.listeners) {
          send(listener, batch);
          writes += 1;
          if (writes % writesAtOnce === 0) await nextTurn();
        }
      }
    } catch (error) {
      this.#parts.log.warn({ err: error }, 'events could not be sent');
    }
    this.#lastWrites = writes;
    // Unless all listeners left meanwhile: a listener that came after that has started a timer already.
    if (this.#timer === own) this.#timer = this.#schedule();
  }

  #takeBatches(): Batch[] {
    const statistics = this.#statistics ?? '';
    this.#statistics = null;
    return this.#allChannels()
      .map((channel) => toBatch(channel, statistics, this.#batchBytes))
      .filter(({ buffer }) => buffer.length > 0);
  }

  /** Once a second for all. Batches don't wait for it: the next one carries what it found. */
  async #count(): Promise<void> {
    const nowMs = performance.now();
    if (this.#counting || nowMs - this.#countedAtMs < statisticsEveryMs - batchEveryMs / 2) return;
    this.#countedAtMs = nowMs;
    this.#counting = true;
    try {
      this.#statistics = frame('stats', statisticsToWire(await this.#parts.api.getStatistics()));
    } catch (error) {
      this.#parts.log.warn({ err: error }, 'no statistics for those who listen');
    } finally {
      this.#counting = false;
    }
  }
}

function toBatch(channel: Channel, statistics: string, maxBytes: number): Batch {
  const frames = cutToBytes(channel, maxBytes);
  const missed = channel.missed + channel.frames.length - frames.length;
  const gap = missed === 0 ? '' : gapFrame(missed);
  channel.frames = [];
  channel.bytes = 0;
  channel.missed = 0;
  // Statistics cover all queues: a confined caller may not see them, and a listener of one task has no use for them.
  const { within, taskId } = channel.filter;
  const ofAll = isConfined(within) || taskId !== null ? '' : statistics;
  const buffer = Buffer.from(`${frames.join('')}${gap}${ofAll}`);
  return { channel, events: frames.length, missed, buffer };
}

/** The channel gathered more than its share if further listeners joined since. */
function cutToBytes({ frames, bytes }: Channel, maxBytes: number): readonly string[] {
  if (bytes <= maxBytes) return frames;
  let left = maxBytes;
  const end = frames.findIndex((text) => {
    left -= text.length;
    return left < 0;
  });
  return end === -1 ? frames : frames.slice(0, Math.max(1, end));
}

function send(listener: Listener, { buffer, events, missed }: Batch): void {
  const { response } = listener;
  if (response.writableEnded || response.destroyed) return;
  const nowMs = performance.now();
  if (response.writableLength > maxUnreadBytes) {
    listener.missed += events + missed;
    listener.slowSinceMs ??= nowMs;
    if (nowMs - listener.slowSinceMs > slowForMs) response.destroy();
    return;
  }
  listener.slowSinceMs = null;
  if (listener.missed > 0) response.write(gapFrame(listener.missed));
  listener.missed = 0;
  response.write(buffer);
}

function refusal(detail: string): SluiceError {
  return new SluiceError('refused', detail, { retryAfterSeconds: 5 });
}

function gapFrame(missed: number): string {
  return frame('gap', { missed });
}

function frame(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
