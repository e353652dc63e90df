import { afterEach, expect, it } from 'vitest';
import { until } from '../../test/support/until.js';
import { PressureGauge, type PressureOptions } from './pressure.js';

const started: PressureGauge[] = [];
afterEach(() => {
  for (const gauge of started.splice(0)) gauge.stop();
});

function gauge(options: PressureOptions = {}): PressureGauge {
  const made = new PressureGauge(options);
  started.push(made);
  made.start();
  return made;
}

function block(ms: number): void {
  const endsAt = performance.now() + ms;
  while (performance.now() < endsAt);
}

it('R-WO3: memory is a share of what the process may use, as far as that can be seen', () => {
  const { memoryShare } = gauge().read();
  expect(memoryShare).toBeGreaterThan(0);
  expect(memoryShare).toBeLessThan(1);
});

it('R-WO3: a limit that is not visible can be named', () => {
  const rss = process.memoryUsage.rss();
  expect(gauge({ memoryLimitBytes: rss / 2 }).read().memoryShare).toBeGreaterThan(1);
  expect(() => gauge({ memoryLimitBytes: 0 })).toThrow(RangeError);
  expect(() => gauge({ latencyThresholdMs: NaN })).toThrow(RangeError);
});

it('R-WO3: a blocked event loop is seen, also right after a look, and passes', async () => {
  const pressure = gauge();
  await until('the first sample', () => pressure.read().eventLoopDelayMs > 0);
  for (let i = 0; i < 2; i += 1) {
    pressure.read();
    block(300);
    await until('the delay to be seen', () => pressure.read().eventLoopDelayMs > 100);
    await until('the delay to pass', () => pressure.read().eventLoopDelayMs < 100);
  }
});

it('R-WO3: p99 of the last durations against its threshold, if there is one', () => {
  const pressure = gauge({ latencyThresholdMs: 100 });
  expect(pressure.read().durationShare).toBe(0);
  for (let i = 0; i < 197; i += 1) pressure.noteDuration(50);
  pressure.noteDuration(200);
  expect(pressure.read().durationShare).toBe(0.5);
  for (let i = 0; i < 2; i += 1) pressure.noteDuration(300);
  expect(pressure.read().durationShare).toBe(2);
  for (let i = 0; i < 200; i += 1) pressure.noteDuration(10);
  expect(pressure.read().durationShare).toBe(0.1);

  const indifferent = gauge();
  indifferent.noteDuration(1e9);
  expect(indifferent.read().durationShare).toBe(0);
});
