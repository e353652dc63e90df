import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { connection, get, noteSignedIn, Unreachable } from './http.js';

export interface Polled<Answer> {
  /** The last answer, also while the next one is under way or cannot be had. */
  readonly data: Answer | null;
  readonly error: unknown;
  /** Asks again now. */
  readonly reload: () => void;
}

export interface Pace {
  /** Between the answer and the next question; null: asked once. */
  readonly everyMs: number | null;
}

/** While the server is away it is asked this often. */
const lostMs = 2_000;
/** Slow answers are asked for less often: a question takes a fiftieth of the server's time at most. */
const restFactor = 50;

/** Asks, rests, and asks again while somebody looks at the page. */
class Poller {
  readonly #everyMs: number | null;
  readonly #ask: (signal: AbortSignal) => Promise<void>;
  readonly #ending = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isAsking = false;
  #askAgain = false;

  constructor(everyMs: number | null, ask: (signal: AbortSignal) => Promise<void>) {
    this.#everyMs = everyMs;
    this.#ask = ask;
    const onVisibility = () => this.#onVisibility();
    document.addEventListener('visibilitychange', onVisibility, { signal: this.#ending.signal });
  }

  tick(): void {
    clearTimeout(this.#timer);
    if (this.#isAsking) {
      this.#askAgain = true;
      return;
    }
    this.#isAsking = true;
    const beganMs = performance.now();
    void this.#ask(this.#ending.signal).finally(() => {
      this.#isAsking = false;
      this.#rest(performance.now() - beganMs);
    });
  }

  stop(): void {
    this.#ending.abort();
    clearTimeout(this.#timer);
  }

  #rest(tookMs: number): void {
    if (this.#ending.signal.aborted) return;
    if (this.#askAgain) {
      this.#askAgain = false;
      this.tick();
      return;
    }
    const restMs = this.#restMs(tookMs);
    if (!document.hidden && restMs !== null) this.#timer = setTimeout(() => this.tick(), restMs);
  }

  #restMs(tookMs: number): number | null {
    if (connection.get() === 'lost') return lostMs;
    return this.#everyMs === null ? null : Math.max(this.#everyMs, tookMs * restFactor);
  }

  #onVisibility(): void {
    if (document.hidden) clearTimeout(this.#timer);
    else if (this.#everyMs !== null) this.tick();
  }
}

/**
 * The answer to a question that is asked again and again, while somebody looks at the page. `path` null: nothing is
 * asked. A question that changes keeps the old answer until the new one is there only if `path` stays the same.
 */
export function usePolled<Answer>(
  path: string | null,
  { everyMs }: Pace,
  ask: (path: string, signal: AbortSignal) => Promise<Answer> = get,
): Polled<Answer> {
  const [answer, setAnswer] = useState<{ path: string; data: Answer } | null>(null);
  const [failure, setFailure] = useState<{ path: string; error: unknown } | null>(null);
  const wake = useRef<() => void>(() => undefined);
  const reload = useCallback(() => wake.current(), []);

  useEffect(() => {
    if (path === null) return undefined;
    const poller = new Poller(everyMs, async (signal) => {
      try {
        const data = await ask(path, signal);
        if (signal.aborted) return;
        noteSignedIn();
        setAnswer({ path, data });
        setFailure(null);
      } catch (error) {
        if (!signal.aborted) setFailure({ path, error });
      }
    });
    wake.current = () => poller.tick();
    poller.tick();
    return () => poller.stop();
  }, [path, everyMs, ask]);

  return {
    data: answer !== null && answer.path === path ? answer.data : null,
    error: failure !== null && failure.path === path ? failure.error : null,
    reload,
  };
}

/** Whether the banner about the connection says it already. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof Unreachable;
}
