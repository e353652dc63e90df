import { createContextKey, type Context } from '@opentelemetry/api';

const key = createContextKey('sluice.used_tokens');

/** A handler with more spans than this has the tokens of the first ones counted, and no more memory used. */
const maxSpans = 10_000;

interface Node {
  /** Of the span itself; 0 when it says nothing. */
  tokens: number;
  readonly children: string[];
}

/**
 * What the spans of one attempt say that they used. The span of an agent may say what its children say together, and
 * two libraries may tell of one call in spans inside each other: of a span and all below it the larger number counts.
 */
export class UsedTokens {
  readonly #nodes = new Map<string, Node>();
  readonly #roots: string[] = [];
  #isKnown = false;

  started(spanId: string, parentId: string | undefined): void {
    if (this.#nodes.size >= maxSpans) return;
    this.#nodes.set(spanId, { tokens: 0, children: [] });
    const parent = parentId === undefined ? undefined : this.#nodes.get(parentId);
    (parent?.children ?? this.#roots).push(spanId);
  }

  ended(spanId: string, tokens: number): void {
    const node = this.#nodes.get(spanId);
    if (node === undefined) return;
    node.tokens = tokens;
    this.#isKnown = true;
  }

  /** Null: no span that has ended says anything. */
  total(): number | null {
    return this.#isKnown ? this.#sum() : null;
  }

  /** From the last span to the first: a parent began before its children. No recursion, whatever their depth. */
  #sum(): number {
    const totals = new Map<string, number>();
    const sumOf = (ids: readonly string[]) =>
      ids.reduce((sum, id) => sum + (totals.get(id) ?? 0), 0);
    for (const [id, { tokens, children }] of [...this.#nodes].reverse()) {
      totals.set(id, Math.max(tokens, sumOf(children)));
    }
    return sumOf(this.#roots);
  }
}

export function withUsedTokens(context: Context, used: UsedTokens): Context {
  return context.setValue(key, used);
}

/** Undefined outside of an attempt. */
export function usedTokensIn(context: Context): UsedTokens | undefined {
  const used = context.getValue(key);
  return used instanceof UsedTokens ? used : undefined;
}
