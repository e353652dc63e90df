import { isSpanContextValid, type SpanContext } from '@opentelemetry/api';

/**
 * W3C trace context, version 00: what a task keeps of the span that submitted it. By hand and not by the global
 * propagator, which may write other headers than this one. Null: there is no trace.
 */
export function traceparentOf(span: SpanContext): string | null {
  if (!isSpanContextValid(span)) return null;
  const flags = span.traceFlags.toString(16).padStart(2, '0');
  return `00-${span.traceId}-${span.spanId}-${flags}`;
}

export function spanContextOf(traceparent: string): SpanContext {
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-');
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}
