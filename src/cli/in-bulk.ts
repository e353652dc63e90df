import type { SingleBar } from 'cli-progress';
import { paint } from './output.js';

/** Something that takes as many calls as there are portions. */
export interface InBulk<Answer> {
  /** What the bar says of those that are done: "cancelled". */
  readonly done: string;
  readonly call: (cursor: string | undefined) => Promise<Answer>;
  readonly countOf: (answer: Answer) => number;
  /** How many are left after the first call; asked only when it was not the last one. */
  readonly countLeft: () => Promise<number>;
}

/** Call after call until there are no more; with a bar where a person looks and it takes a while. */
export async function inBulk<Answer extends { readonly nextCursor: string | null }>(
  bulk: InBulk<Answer>,
): Promise<readonly Answer[]> {
  const first = await bulk.call(undefined);
  const answers = [first];
  if (first.nextCursor === null) return answers;
  let count = bulk.countOf(first);
  const bar = await startBar(bulk.done, count + (await bulk.countLeft()), count);
  try {
    for (let cursor: string | null = first.nextCursor; cursor !== null;) {
      const answer: Answer = await bulk.call(cursor);
      answers.push(answer);
      count += bulk.countOf(answer);
      // What was counted may be a lower bound, and tasks come while it runs.
      bar.setTotal(Math.max(bar.getTotal(), count));
      bar.update(count);
      cursor = answer.nextCursor;
    }
  } finally {
    bar.stop();
  }
  return answers;
}

/** On stderr, and only on a terminal. */
async function startBar(done: string, total: number, value: number): Promise<SingleBar> {
  const { default: progress } = await import('cli-progress');
  const bar = new progress.SingleBar({
    format: `${paint('cyan', '{bar}')} {value} of {total} ${done}`,
    barCompleteChar: '█',
    barIncompleteChar: '░',
    barsize: 30,
    hideCursor: true,
    clearOnComplete: true,
  });
  bar.start(total, value);
  return bar;
}
