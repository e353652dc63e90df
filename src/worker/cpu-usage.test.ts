import { expect, it } from 'vitest';
import { CpuUsage } from './cpu-usage.js';

it('R-OB11: cores in use since the reading before, where that is long enough ago', () => {
  const read = { usedMs: 5_000, nowMs: 1_000 };
  const cpu = new CpuUsage(
    () => read.usedMs,
    () => read.nowMs,
  );
  expect(cpu.read()).toBe(0);
  Object.assign(read, { usedMs: 6_500, nowMs: 2_000 });
  expect(cpu.read()).toBe(1.5);
  Object.assign(read, { usedMs: 6_599, nowMs: 2_099 });
  expect(cpu.read()).toBe(1.5);
  Object.assign(read, { usedMs: 6_600, nowMs: 2_200 });
  expect(cpu.read()).toBe(0.5);
});

it('R-OB11: this process uses what the system says', () => {
  let nowMs = 0;
  const cpu = new CpuUsage(undefined, () => nowMs);
  const before = process.cpuUsage();
  while (process.cpuUsage(before).user < 20_000);
  nowMs = 1_000;
  expect(cpu.read()).toBeGreaterThanOrEqual(0.02);
});
