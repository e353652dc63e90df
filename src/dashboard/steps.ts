export interface Step {
  readonly next_cursor: string | null;
}

interface Steps<Answer> {
  /** An answer that comes after the stop is not heard of. */
  readonly signal?: AbortSignal;
  /** False: that is enough. */
  readonly onAnswer: (answer: Answer) => boolean;
}

/**
 * Call after call, each where the one before ended, until there are no more or somebody stops it. Answers whether it came
 * to the end.
 */
export async function stepOn<Answer extends Step>(
  from: string | null,
  ask: (cursor: string | null) => Promise<Answer>,
  { signal, onAnswer }: Steps<Answer>,
): Promise<boolean> {
  let cursor = from;
  do {
    const answer = await ask(cursor);
    if (signal?.aborted === true) return false;
    cursor = answer.next_cursor;
    if (!onAnswer(answer)) break;
  } while (cursor !== null);
  return cursor === null;
}
