import type { ReplayedDeadLetters } from '../protocol/dead-letters-api.js';
import { replayedToWire } from '../protocol/dead-letters-wire.js';
import { printJson, printLine } from './output.js';
import { readableSeconds } from './readable.js';

/** What all calls of a replay did together. */
export function printReplayed(
  answers: readonly ReplayedDeadLetters[],
  { json }: { readonly json?: boolean },
): void {
  const replayed = answers.reduce((sum, answer) => sum + answer.replayed, 0);
  const lastDueAt = answers.findLast((answer) => answer.lastDueAt !== null)?.lastDueAt ?? null;
  if (json === true) {
    printJson(replayedToWire({ replayed, lastDueAt, nextCursor: null }));
    return;
  }
  const leftSeconds = lastDueAt === null ? 0 : (lastDueAt.getTime() - Date.now()) / 1000;
  const until = leftSeconds > 1 ? `; the last is due in ${readableSeconds(leftSeconds)}` : '';
  printLine(`${replayed} replayed${until}`);
}
