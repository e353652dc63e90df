import type { Attributes, Context, SpanContext } from '@opentelemetry/api';
import { countTokens } from './count-tokens.js';
import { usedTokensIn, type UsedTokens } from './used-tokens.js';

/** What is read of a span of the SDK, of version 1 or 2. */
interface ReadSpan {
  spanContext(): SpanContext;
  readonly attributes: Attributes;
  readonly parentSpanContext?: SpanContext | undefined;
  readonly parentSpanId?: string | undefined;
}

/** A span processor, for the `spanProcessors` of an OpenTelemetry SDK. */
export interface TokenUsageProcessor {
  onStart(span: ReadSpan, parentContext: Context): void;
  onEnd(span: ReadSpan): void;
  forceFlush(): Promise<void>;
  shutdown(): Promise<void>;
}

export interface TokenUsageOptions {
  /** How many tokens a span used, by its attributes; null when it says nothing. Default: by `gen_ai.usage.*`. */
  readonly count?: (attributes: Attributes) => number | null;
}

/**
 * Counts the tokens that the spans of a handler say it used. They settle the token limits of its queue when the handler
 * called no `usage()` itself. It sees the spans that are recorded: one that a sampler drops is not counted.
 */
export function tokenUsage({ count = countTokens }: TokenUsageOptions = {}): TokenUsageProcessor {
  const attemptOf = new WeakMap<ReadSpan, UsedTokens>();
  return {
    onStart(span, parentContext) {
      const attempt = usedTokensIn(parentContext);
      if (attempt === undefined) return;
      attemptOf.set(span, attempt);
      attempt.started(
        span.spanContext().spanId,
        span.parentSpanContext?.spanId ?? span.parentSpanId,
      );
    },
    onEnd(span) {
      const attempt = attemptOf.get(span);
      if (attempt === undefined) return;
      const tokens = count(span.attributes);
      if (tokens !== null) attempt.ended(span.spanContext().spanId, tokens);
    },
    forceFlush: async () => undefined,
    shutdown: async () => undefined,
  };
}
