import { useEffect, useRef, useState } from 'preact/hooks';
import type { QueuePageWire, QueueWire } from '../protocol/queues-schema.js';
import { get, query } from './http.js';
import { usePolled } from './polled.js';
import { Store, useStore } from './store.js';

/** A page of this size is answered in a moment, also beside other work. */
const pageSize = 250;
/** With more queues a lap over all of them takes long: those in sight are asked for by themselves. */
const fewQueues = 500;
const inSightEveryMs = 5_000;
const atOnce = 4;

/** All queues: page after page, each shown as soon as it is there. */
class QueueList {
  readonly known = new Store<readonly QueueWire[] | null>(null);
  #isWhole = false;

  readonly load = async (path: string, signal: AbortSignal): Promise<true> => {
    const found: QueueWire[] = [];
    let cursor: string | null = null;
    do {
      const page: QueuePageWire = await get(query(path, { limit: pageSize, cursor }), signal);
      found.push(...page.items);
      cursor = page.next_cursor;
      if (!this.#isWhole) this.known.set([...found]);
    } while (cursor !== null);
    this.#isWhole = true;
    this.known.set(found);
    return true;
  };

  async refresh(names: readonly string[]): Promise<void> {
    const wanted = [...names];
    const fresh = new Map<string, QueueWire>();
    const ask = async () => {
      for (let name = wanted.pop(); name !== undefined; name = wanted.pop()) {
        fresh.set(name, await get<QueueWire>(`queues/${encodeURIComponent(name)}`));
      }
    };
    await Promise.allSettled(Array.from({ length: atOnce }, ask));
    this.known.set((this.known.get() ?? []).map((queue) => fresh.get(queue.name) ?? queue));
  }

  get isLong(): boolean {
    return (this.known.get()?.length ?? 0) > fewQueues;
  }
}

export interface QueuesInSight {
  /** Null: none is known yet. */
  readonly queues: readonly QueueWire[] | null;
  readonly error: unknown;
  /** Which rows are seen. */
  readonly look: (names: readonly string[]) => void;
}

export function useQueueList(): QueuesInSight {
  const [list] = useState(() => new QueueList());
  const queues = useStore(list.known);
  const { error } = usePolled('queues', { everyMs: 3_000 }, list.load);
  const inSight = useRef<readonly string[]>([]);
  const [look] = useState(() => (names: readonly string[]) => {
    inSight.current = names;
  });
  useEffect(() => {
    let isAsking = false;
    const timer = setInterval(() => {
      if (document.hidden || isAsking || !list.isLong) return;
      isAsking = true;
      void list.refresh(inSight.current).finally(() => {
        isAsking = false;
      });
    }, inSightEveryMs);
    return () => clearInterval(timer);
  }, [list]);
  return { queues, error, look };
}
