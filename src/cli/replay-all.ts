import type { SingleBar } from 'cli-progress';
import type {
  DeadLetterApi,
  DeadLetterFilter,
  DeadLetterReplay,
  ReplayedDeadLetters,
} from '../protocol/dead-letters-api.js';
import { paint } from './output.js';

/** Call after call until there are no more; with a bar where a person looks and it takes a while. */
export async function replayAll(
  api: DeadLetterApi,
  filter: DeadLetterFilter,
  request: DeadLetterReplay,
): Promise<Omit<ReplayedDeadLetters, 'nextCursor'>> {
  let answer = await api.replayDeadLetters(filter, request);
  let { replayed, lastDueAt } = answer;
  if (answer.nextCursor === null) return { replayed, lastDueAt };
  const { totalCount } = await api.listDeadLetters(filter, { limit: 1 });
  const bar = await startBar(replayed + totalCount, replayed);
  try {
    while (answer.nextCursor !== null) {
      answer = await api.replayDeadLetters(filter, { ...request, cursor: answer.nextCursor });
      replayed += answer.replayed;
      lastDueAt = answer.lastDueAt ?? lastDueAt;
      // What the server counts ends at 10,000.
      bar.setTotal(Math.max(bar.getTotal(), replayed));
      bar.update(replayed);
    }
  } finally {
    bar.stop();
  }
  return { replayed, lastDueAt };
}

/** On stderr, and only on a terminal. */
async function startBar(total: number, value: number): Promise<SingleBar> {
  const { default: progress } = await import('cli-progress');
  const bar = new progress.SingleBar({
    format: `${paint('cyan', '{bar}')} {value} of {total} replayed`,
    barCompleteChar: '█',
    barIncompleteChar: '░',
    barsize: 30,
    hideCursor: true,
    clearOnComplete: true,
  });
  bar.start(total, value);
  return bar;
}
