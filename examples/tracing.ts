import { trace } from '@opentelemetry/api';
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace-node';
import { defineTask, Sluice } from 'sluice';
import { instrument, tokenUsage } from 'sluice/otel';

const spans = new InMemorySpanExporter(); // yours is an OTLP exporter, in a BatchSpanProcessor
new NodeTracerProvider({
  spanProcessors: [tokenUsage(), new SimpleSpanProcessor(spans)],
}).register();
const tracer = trace.getTracer('my program');

const summarize = defineTask({
  type: 'summarize',
  queue: 'gpt-4o',
  cost: { tokens: 1_000 },
  run: async () => {
    // What an instrumented SDK of a model writes.
    const span = tracer.startSpan('chat gpt-4o');
    span.setAttributes({ 'gen_ai.usage.input_tokens': 1_500, 'gen_ai.usage.output_tokens': 334 });
    span.end();
    return 'a summary';
  },
});

const sluice = instrument(await Sluice.open(), { structure: 'parent' });
await sluice.worker([summarize]).start();
const handle = await tracer.startActiveSpan('GET /summary', async (request) => {
  const submitted = await sluice.submit(summarize, {});
  request.end();
  return submitted;
});
const { usage } = await handle.ended();
await sluice.close();

print();
console.log(`settled with ${usage?.tokens} tokens`);

function print(parentId?: string, indent = ''): void {
  const isChild = (span: ReadableSpan) => span.parentSpanContext?.spanId === parentId;
  for (const span of spans.getFinishedSpans().filter(isChild)) {
    console.log(`${indent}${span.name}`);
    print(span.spanContext().spanId, `${indent}  `);
  }
}
