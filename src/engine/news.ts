import type { TaskId, WorkerId } from '../domain/ids.js';
import type { JsonValue } from '../domain/json.js';
import type { Bench } from './bench.js';
import type { EngineContext } from './context.js';
import type { Fleet } from './fleet.js';
import type { PollWaiters } from './poll-waiters.js';
import type { QueueDirectory } from './queue-directory.js';

/** What concerns a worker that may poll another server, or what all servers keep a copy of. */
export type Item =
  | { readonly kind: 'cancelled'; readonly workerId: WorkerId; readonly taskId: TaskId }
  | { readonly kind: 'draining'; readonly workerId: WorkerId }
  | { readonly kind: 'buried'; readonly workerId: WorkerId }
  /** Null: it is trusted again. */
  | {
      readonly kind: 'benched';
      readonly workerId: WorkerId;
      readonly untilMs: number | null;
    }
  /** Nobody who reports here succeeds at what it fails at; perhaps somebody elsewhere does. */
  | {
      readonly kind: 'failing';
      readonly workerId: WorkerId;
      readonly failures: readonly {
        readonly kind: string;
        readonly count: number;
        /** Since the first of them. The clocks of two servers differ. */
        readonly ageMs: number;
        /** Since the latest of the failed attempts began. */
        readonly begunAgeMs: number;
      }[];
    }
  /** The service of the queue refused this task. */
  | { readonly kind: 'refused'; readonly queue: string; readonly taskId: TaskId }
  | { readonly kind: 'configured' }
  | { readonly kind: 'limit deleted'; readonly name: string; readonly version: number };

export interface NewsParts {
  readonly fleet: Fleet;
  readonly waiters: PollWaiters;
  readonly queues: QueueDirectory;
  readonly bench: Bench;
  readonly onBenched: (item: Item & { kind: 'benched' }) => void;
  readonly onFailing: (item: Item & { kind: 'failing' }) => void;
  readonly onRefused: (item: Item & { kind: 'refused' }) => void;
}

/**
 * Between servers, and only to be quick: a worker learns at its next heartbeat what got lost here,
 * and settings are read again every few seconds.
 */
export class News {
  readonly #context: EngineContext;
  readonly #parts: NewsParts;
  readonly #stop: () => void;

  constructor(context: EngineContext, parts: NewsParts) {
    this.#context = context;
    this.#parts = parts;
    this.#stop = context.bus.subscribe((message) => {
      const item = toItem(message);
      if (item !== null) this.#hear(item);
    });
  }

  /** Here, and to all others. */
  tell(item: Item): void {
    if (!onlyForOthers.has(item.kind)) this.#hear(item);
    this.#context.bus.publish({ ...item });
  }

  close(): void {
    this.#stop();
  }

  #hear(item: Item): void {
    const { fleet, waiters, queues } = this.#parts;
    switch (item.kind) {
      case 'cancelled':
        fleet.find(item.workerId)?.cancelled.add(item.taskId);
        this.#parts.bench.giveBack(item.workerId, 1);
        waiters.wakeWorker(item.workerId);
        return;
      case 'draining': {
        const worker = fleet.find(item.workerId);
        if (worker !== null) worker.draining = true;
        waiters.wakeWorker(item.workerId);
        return;
      }
      case 'buried':
        fleet.forget(item.workerId);
        waiters.wakeWorker(item.workerId);
        return;
      case 'benched':
        this.#parts.onBenched(item);
        waiters.wakeWorker(item.workerId);
        return;
      case 'failing':
        this.#parts.onFailing(item);
        return;
      case 'refused':
        this.#parts.onRefused(item);
        return;
      case 'configured':
        queues.refresh().catch((error: unknown) => {
          this.#context.log.warn({ err: error }, 'could not read the settings of queues again');
        });
        return;
      case 'limit deleted':
        queues.limitDeleted(item.name, item.version);
    }
  }
}

const kinds: readonly string[] = [
  'cancelled',
  'draining',
  'buried',
  'benched',
  'failing',
  'refused',
  'configured',
  'limit deleted',
];

/** Whoever tells these has seen to them. */
const onlyForOthers: ReadonlySet<string> = new Set(['configured', 'failing', 'refused']);

/** Other messages on the bus are not for us. */
function toItem(message: JsonValue): Item | null {
  if (message === null || typeof message !== 'object' || Array.isArray(message)) return null;
  const { kind } = message as Record<string, JsonValue>;
  return typeof kind === 'string' && kinds.includes(kind) ? (message as unknown as Item) : null;
}
