import { context, propagation, trace, type SpanStatusCode } from '@opentelemetry/api';
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace-node';
import { tokenUsage } from '../../src/otel/index.js';
import { until } from '../support/until.js';

export interface Told {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly links: readonly string[];
  readonly status: SpanStatusCode;
  readonly attributes: ReadableSpan['attributes'];
  readonly kind: ReadableSpan['kind'];
  readonly seconds: number;
}

/** A real SDK with its spans in memory, as a user sets it up. */
export class Recording {
  readonly #exporter = new InMemorySpanExporter();
  readonly provider = new NodeTracerProvider({
    spanProcessors: [tokenUsage(), new SimpleSpanProcessor(this.#exporter)],
  });
  readonly tracer = this.provider.getTracer('a program');

  /** Whose context the spans of a handler are found by. */
  start(): void {
    this.provider.register();
  }

  async stop(): Promise<void> {
    context.disable();
    trace.disable();
    propagation.disable();
    await this.provider.shutdown();
  }

  clear(): void {
    this.#exporter.reset();
  }

  get spans(): readonly Told[] {
    return this.#exporter.getFinishedSpans().map(told);
  }

  named(name: string): readonly Told[] {
    return this.spans.filter((span) => span.name === name);
  }

  /** The one of this name, as soon as it has ended. */
  async ended(name: string): Promise<Told> {
    const [span, ...others] = await this.allEnded(name, 1);
    if (span === undefined || others.length > 0) throw new Error(`${name} is there more than once`);
    return span;
  }

  allEnded(name: string, count: number): Promise<readonly Told[]> {
    return until(`${count} spans ${name}`, () => {
      const found = this.named(name);
      return found.length >= count ? found : null;
    });
  }
}

function told(span: ReadableSpan): Told {
  const { traceId, spanId } = span.spanContext();
  return {
    name: span.name,
    traceId,
    spanId,
    parentId: span.parentSpanContext?.spanId,
    links: span.links.map((link) => link.context.spanId),
    status: span.status.code,
    attributes: span.attributes,
    kind: span.kind,
    seconds: span.duration[0] + span.duration[1] / 1e9,
  };
}
