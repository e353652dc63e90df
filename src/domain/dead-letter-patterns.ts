/** Of each kind: with a message, and without one. Anybody may invent messages, types and codes. */
export const maxPatterns = 1_000;

/** What the task type and the code of the last pattern are, which takes all that no other may take. */
export const anyName = '*';

export interface PatternKey {
  readonly taskType: string;
  readonly code: string;
  /** Null: all messages of this type and code that have no pattern of their own. */
  readonly message: string | null;
}

/** How many patterns there are already. */
export interface PatternCounts {
  readonly withMessage: number;
  readonly withoutMessage: number;
}

/** From the pattern that is wanted to the one that takes its place when there are too many. */
export function patternsFor({ taskType, code, message }: PatternKey): readonly PatternKey[] {
  return [
    { taskType, code, message },
    { taskType, code, message: null },
    { taskType: anyName, code: anyName, message: null },
  ];
}

/**
 * Which pattern each dead letter gets, in their order: its own if that is known or has room, else the one of its type
 * and code, else the last one.
 */
export function choosePatterns(
  wanted: readonly PatternKey[],
  isKnown: (pattern: PatternKey) => boolean,
  counts: PatternCounts,
  idOf: (pattern: PatternKey) => string,
): PatternKey[] {
  const added = new Set<string>();
  let { withMessage, withoutMessage } = counts;
  const has = (pattern: PatternKey): boolean => isKnown(pattern) || added.has(idOf(pattern));
  return wanted.map((key) => {
    const [own = key, ofCode = key, last = key] = patternsFor(key);
    if (has(own)) return own;
    if (withMessage < maxPatterns) {
      withMessage += 1;
      added.add(idOf(own));
      return own;
    }
    if (has(ofCode)) return ofCode;
    // One place is kept for the last.
    if (withoutMessage >= maxPatterns - 1) return last;
    withoutMessage += 1;
    added.add(idOf(ofCode));
    return ofCode;
  });
}
