import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Alarm } from './alarm.js';

describe('Alarm', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('rings once, at the instant that was set last', () => {
    const ring = vi.fn();
    const alarm = new Alarm(ring);
    const nowMs = performance.now();
    alarm.set(nowMs + 10);
    alarm.set(nowMs + 30);
    alarm.advance(nowMs + 40);
    vi.advanceTimersByTime(29);
    expect(ring).not.toHaveBeenCalled();
    vi.advanceTimersByTime(100);
    expect(ring).toHaveBeenCalledOnce();
  });

  it('can be set to ring sooner, or not at all', () => {
    const ring = vi.fn();
    const alarm = new Alarm(ring);
    const nowMs = performance.now();
    alarm.set(nowMs + 30);
    alarm.advance(nowMs + 10);
    vi.advanceTimersByTime(10);
    expect(ring).toHaveBeenCalledOnce();
    alarm.set(nowMs + 20);
    alarm.stop();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('a timer that ends early is no reason to ring', () => {
    const ring = vi.fn();
    const alarm = new Alarm(ring);
    const now = vi.spyOn(performance, 'now').mockReturnValue(0);
    alarm.set(9.5);
    now.mockReturnValue(9.4);
    vi.advanceTimersByTime(10);
    expect(ring).not.toHaveBeenCalled();
    now.mockReturnValue(9.5);
    vi.advanceTimersByTime(1);
    expect(ring).toHaveBeenCalledOnce();
    now.mockRestore();
  });
});
