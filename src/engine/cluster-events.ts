import { randomUUID } from 'node:crypto';
import type { TaskId } from '../domain/ids.js';
import type { JsonValue } from '../domain/json.js';
import type { TaskEvent } from '../protocol/events.js';
import type { EngineContext } from './context.js';

/** Null: of any queue, or of any task. */
export interface FollowedTasks {
  readonly queue: string | null;
  readonly taskId: TaskId | null;
}

export interface Follower {
  readonly hear: (event: TaskEvent) => void;
  /** Another server had more events than it could send. */
  readonly missed: (count: number) => void;
  /** What it follows now. */
  readonly followed: () => readonly FollowedTasks[];
}

export interface Following {
  /** It follows something else from now on. */
  changed(): void;
  stop(): void;
}

const sendEveryMs = 200;
/** 5,000 events a second of each server: about 1.5 MB a second over the bus. */
const maxEventsAtOnce = 1_000;
const askEveryMs = 3_000;
/** Two requests may get lost. */
const wantedForMs = 10_000;
/** With more, the other servers send all events. */
const maxNamed = 1_000;
/** Requests that come together, as when many listeners connect again, are one message. */
const askAfterMs = 20;

interface Wanted {
  readonly untilMs: number;
  readonly all: boolean;
  readonly queues: readonly string[];
  readonly taskIds: readonly string[];
}

/**
 * Events of all servers, for people who follow them. A server sends its events over the bus only while another one
 * asks for them, so that they cost nothing while nobody follows. Events may get lost; tasks don't depend on them.
 */
export class ClusterEvents {
  readonly #context: EngineContext;
  readonly #id = randomUUID();
  readonly #followers = new Set<Follower>();
  /** By the server that asked. */
  readonly #wanted = new Map<string, Wanted>();
  #all = false;
  #queues = new Set<string>();
  #taskIds = new Set<string>();
  readonly #stopListening: () => void;
  #stopOwn: (() => void) | null = null;
  #askTimer: NodeJS.Timeout | null = null;
  #sendTimer: NodeJS.Timeout | null = null;
  #outgoing: TaskEvent[] = [];
  #missed = 0;

  constructor(context: EngineContext) {
    this.#context = context;
    this.#stopListening = context.bus.subscribe((message) => {
      this.#receive(message);
    });
  }

  follow(follower: Follower): Following {
    this.#followers.add(follower);
    const stopOwn = this.#context.events.subscribe(follower.hear);
    this.#askSoon();
    return {
      changed: () => {
        this.#askSoon();
      },
      stop: () => {
        stopOwn();
        this.#followers.delete(follower);
        if (this.#followers.size === 0) this.#stopAsking();
      },
    };
  }

  close(): void {
    this.#stopListening();
    this.#stopAsking();
    this.#stopSending();
  }

  #askSoon(): void {
    this.#stopAsking();
    this.#askTimer = setTimeout(() => {
      this.#ask();
    }, askAfterMs);
  }

  #ask(): void {
    const followed = [...this.#followers].flatMap((follower) => follower.followed());
    const queues = new Set<string>();
    const taskIds = new Set<string>();
    let all = false;
    for (const { queue, taskId } of followed) {
      if (taskId !== null) taskIds.add(taskId);
      else if (queue !== null) queues.add(queue);
      else all = true;
    }
    all ||= queues.size + taskIds.size > maxNamed;
    const named = all ? {} : { queues: [...queues], taskIds: [...taskIds] };
    this.#context.bus.publish({ kind: 'events wanted', server: this.#id, all, ...named });
    this.#askTimer = setTimeout(() => {
      this.#ask();
    }, askEveryMs);
  }

  #stopAsking(): void {
    if (this.#askTimer !== null) clearTimeout(this.#askTimer);
    this.#askTimer = null;
  }

  #receive(message: JsonValue): void {
    const kind = (message as { readonly kind?: unknown } | null)?.kind;
    if (kind === 'events wanted') this.#noteWanted(message as unknown as WantedMessage);
    else if (kind === 'events') this.#hear(message as unknown as EventsMessage);
  }

  #noteWanted({ server, all, queues = [], taskIds = [] }: WantedMessage): void {
    const untilMs = performance.now() + wantedForMs;
    this.#wanted.set(server, { untilMs, all, queues, taskIds });
    this.#join();
    this.#stopOwn ??= this.#context.events.subscribe((event) => {
      this.#note(event);
    });
    this.#sendTimer ??= setTimeout(() => {
      this.#send();
    }, sendEveryMs);
  }

  /** What any of the others asked for. */
  #join(): void {
    const wanted = [...this.#wanted.values()];
    this.#all = wanted.some(({ all }) => all);
    this.#queues = new Set(wanted.flatMap(({ queues }) => queues));
    this.#taskIds = new Set(wanted.flatMap(({ taskIds }) => taskIds));
  }

  #note(event: TaskEvent): void {
    if (!this.#all && !this.#queues.has(event.queue) && !this.#taskIds.has(event.taskId)) return;
    if (this.#outgoing.length < maxEventsAtOnce) this.#outgoing.push(event);
    else this.#missed += 1;
  }

  #send(): void {
    if (this.#outgoing.length > 0) {
      const events = this.#outgoing.map((event) => ({ ...event, at: event.at.getTime() }));
      this.#context.bus.publish({ kind: 'events', events, missed: this.#missed });
      this.#outgoing = [];
      this.#missed = 0;
    }
    const nowMs = performance.now();
    for (const [server, { untilMs }] of this.#wanted) {
      if (untilMs < nowMs) this.#wanted.delete(server);
    }
    if (this.#wanted.size === 0) {
      this.#stopSending();
      return;
    }
    this.#join();
    this.#sendTimer = setTimeout(() => {
      this.#send();
    }, sendEveryMs);
  }

  #stopSending(): void {
    if (this.#sendTimer !== null) clearTimeout(this.#sendTimer);
    this.#sendTimer = null;
    this.#stopOwn?.();
    this.#stopOwn = null;
  }

  #hear({ events, missed }: EventsMessage): void {
    if (this.#followers.size === 0) return;
    const heard = events.map((event) => ({ ...event, at: new Date(event.at) }));
    for (const follower of this.#followers) {
      for (const event of heard) follower.hear(event);
      if (missed > 0) follower.missed(missed);
    }
  }
}

interface WantedMessage {
  readonly server: string;
  readonly all: boolean;
  readonly queues?: readonly string[];
  readonly taskIds?: readonly string[];
}

interface EventsMessage {
  readonly events: readonly (Omit<TaskEvent, 'at'> & { readonly at: number })[];
  readonly missed: number;
}
