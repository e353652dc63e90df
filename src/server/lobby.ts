import type { IncomingMessage, ServerResponse } from 'node:http';
import type { App } from './app-type.js';
import { pathOf } from './problem.js';

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

interface Visitor {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly cameMs: number;
}

/** As long may a turn of the event loop begin requests as they come. */
const longestTurnMs = 5;
/** So many of those who wait are let in by one turn. */
const mostPerTurn = 4;
/** Of those who are let in, one in so many is no worker, however many workers wait. */
const othersEvery = 4;
const healthPaths: ReadonlySet<string> = new Set(['/healthz', '/healthz/progress', '/readyz']);
const workersPath = '/internal/workers/';

/** Of these every call is a worker's. */
export function isOfWorkers(path: string): boolean {
  return path.startsWith(workersPath);
}

/**
 * Node accepts one connection in each turn of its event loop, and begins whatever came in one turn: with
 * more requests than it can do, turns grow long, and a new connection waits for as many of them as came
 * before it. Here turns stay short: whoever comes late in one waits. Health checks never do, and workers
 * wait less than others, since what they bring makes room.
 */
export class Lobby {
  readonly #workers: Visitor[] = [];
  readonly #others: Visitor[] = [];
  readonly #waited = new WeakMap<IncomingMessage, number>();
  #handle: Listener = () => undefined;
  #turnBeganMs: number | null = null;
  /** Each lets in one in a turn. */
  #ushers = 0;
  #admitted = 0;

  /** In front of what answers requests now. */
  watch({ server }: Pick<App, 'server'>): void {
    const listeners = server.listeners('request') as Listener[];
    server.removeAllListeners('request');
    this.#handle = (request, response) => {
      for (const listener of listeners) listener.call(server, request, response);
    };
    server.on('request', (request, response) => this.#enter(request, response));
  }

  /** How long this one had to wait until it was let in. */
  waitedMs(request: IncomingMessage): number {
    return this.#waited.get(request) ?? 0;
  }

  #enter(request: IncomingMessage, response: ServerResponse): void {
    const path = pathOf(request.url ?? '');
    const nowMs = performance.now();
    if (healthPaths.has(path) || (this.#isEmpty() && this.#isYoung(nowMs))) {
      this.#handle(request, response);
      return;
    }
    const line = isOfWorkers(path) ? this.#workers : this.#others;
    line.push({ request, response, cameMs: nowMs });
    if (this.#ushers === mostPerTurn) return;
    this.#ushers += 1;
    setImmediate(() => this.#usher());
  }

  #isEmpty(): boolean {
    return this.#workers.length + this.#others.length === 0;
  }

  #isYoung(nowMs: number): boolean {
    if (this.#turnBeganMs === null) {
      this.#turnBeganMs = nowMs;
      setImmediate(() => (this.#turnBeganMs = null));
    }
    return nowMs - this.#turnBeganMs < longestTurnMs;
  }

  #usher(): void {
    const visitor = this.#next();
    if (visitor === undefined) {
      this.#ushers -= 1;
      return;
    }
    setImmediate(() => this.#usher());
    const { request, response, cameMs } = visitor;
    this.#waited.set(request, performance.now() - cameMs);
    this.#handle(request, response);
  }

  /** Who left meanwhile was promised nothing. */
  #next(): Visitor | undefined {
    for (;;) {
      this.#admitted += 1;
      const [first, second] =
        this.#admitted % othersEvery === 0
          ? [this.#others, this.#workers]
          : [this.#workers, this.#others];
      const visitor = first.shift() ?? second.shift();
      if (visitor?.response.destroyed !== true) return visitor;
    }
  }
}
