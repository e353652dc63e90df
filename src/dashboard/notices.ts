import { explain } from './http.js';
import { Store } from './store.js';

export interface Notice {
  readonly id: number;
  readonly kind: 'good' | 'bad';
  readonly text: string;
}

/** What an action did, for a few seconds. */
export const notices = new Store<readonly Notice[]>([]);

const shownMs = { good: 5_000, bad: 12_000 };
let lastId = 0;

export function tell(kind: Notice['kind'], text: string): void {
  lastId += 1;
  const notice = { id: lastId, kind, text };
  notices.set([...notices.get().slice(-2), notice]);
  setTimeout(() => dismiss(notice.id), shownMs[kind]);
}

export function dismiss(id: number): void {
  notices.set(notices.get().filter((notice) => notice.id !== id));
}

/** Does it and says so; or says why not. Answers whether it was done. */
export async function attempt(done: string, action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action();
    tell('good', done);
    return true;
  } catch (error) {
    tell('bad', explain(error));
    return false;
  }
}
