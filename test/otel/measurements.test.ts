import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { expect, it } from 'vitest';
import { defineTask } from '../../src/client/define-task.js';
import { Sluice } from '../../src/client/sluice.js';
import { instrument } from '../../src/otel/index.js';
import { silentLog } from '../../src/runtime/log.js';
import { NonRetriableError } from '../../src/worker/errors.js';

it('R-OB2: the metrics of the conventions for messaging count submits and attempts', async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  const sluice = instrument(await Sluice.open({ dataDir: ':memory:' }), { meterProvider });
  const task = defineTask({
    type: 'odd',
    queue: 'measured',
    run: ({ n }) => {
      if (Number(n) % 2 === 0) throw new NonRetriableError('even', { code: 'EVEN' });
    },
  });
  await sluice.worker([task], { log: silentLog }).start();
  for (const n of [1, 2, 3]) await (await sluice.submit(task, { n })).ended();
  await sluice.close();
  await meterProvider.forceFlush();

  const told = exporter
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
    .flatMap(({ descriptor, dataPoints }) =>
      dataPoints.map(({ value, attributes }) => [
        descriptor.name,
        descriptor.unit,
        attributes['messaging.operation.name'],
        attributes['error.type'],
        typeof value === 'number' ? value : value.count,
      ]),
    );
  expect(told).toEqual([
    ['messaging.client.operation.duration', 's', 'send', undefined, 3],
    ['messaging.client.operation.duration', 's', 'settle', undefined, 3],
    ['messaging.client.sent.messages', '{message}', 'send', undefined, 3],
    ['messaging.client.consumed.messages', '{message}', 'process', undefined, 3],
    ['messaging.process.duration', 's', 'process', undefined, 2],
    ['messaging.process.duration', 's', 'process', 'EVEN', 1],
  ]);
  await meterProvider.shutdown();
});
