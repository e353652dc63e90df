import { describe, expect, it } from 'vitest';

import { defaultQueueSettings, type QueueSettings } from '../domain/queue-settings.js';
import type { LimitUse, QueueLive, QueueView } from '../protocol/queues-api.js';
import { limitUseText, pauseText, runningText, usageText } from './queue-text.js';

const none = { high: 0, medium: 0, low: 0 };

function queue(settings: Partial<QueueSettings>, live: Partial<QueueLive> = {}): QueueView {
  return {
    name: 'q',
    version: 1,
    inForce: true,
    settings: { ...defaultQueueSettings, ...settings },
    live: {
      depth: none,
      effectiveDepth: none,
      backlog: 0,
      active: null,
      running: 0,
      tokens: {},
      nextTokenInMs: null,
      usage: [],
      recoveryFactor: 1,
      pausedUntil: null,
      pausedWhy: null,
      circuit: 'closed',
      oldestAgeSeconds: null,
      lastMinute: { started: 0, completed: 0, failed: 0 },
      ...live,
    },
  };
}

describe('why nothing of a queue is taken', () => {
  const ends = new Date('2030-01-31T12:00:00.000Z');

  it('nothing, when there is no reason', () => {
    expect(pauseText(queue({}))).toBe('');
  });

  it('an operator', () => {
    expect(pauseText(queue({ paused: true }))).toBe('paused');
    expect(pauseText(queue({ paused: true, pausedUntil: ends }))).toBe(
      'paused until 2030-01-31T12:00:00.000Z',
    );
  });

  it('R-RE9: its circuit, with the reason and until when', () => {
    const why = { pausedWhy: 'its service is not available' };
    expect(pauseText(queue({}, { circuit: 'open', pausedUntil: ends, ...why }))).toBe(
      'stopped until 2030-01-31T12:00:00.000Z: its service is not available',
    );
    expect(pauseText(queue({}, { circuit: 'half_open', ...why }))).toBe(
      'stopped: its service is not available',
    );
    expect(pauseText(queue({}, { circuit: 'half_open', recoveryFactor: 0.25 }))).toBe(
      'recovering: a quarter of its limits',
    );
  });
});

describe('what was used of a limit', () => {
  const use: LimitUse = {
    limit: null,
    unit: 'tokens',
    used: 29_800,
    allowed: 30_000,
    perSeconds: 60,
    countedSeconds: 60,
    nextInMs: 1_234,
  };

  it('in the present window, and when the next is free', () => {
    expect(limitUseText(use)).toBe('29,800 of 30,000 used in the last minute, next free in 1.2 s');
    expect(limitUseText({ ...use, perSeconds: 240, countedSeconds: 240, nextInMs: 0 })).toBe(
      '29,800 of 30,000 used in the last 4 min, next free now',
    );
  });

  it('says when it was not counted for the whole window', () => {
    expect(limitUseText({ ...use, countedSeconds: 12 })).toBe(
      '29,800 of 30,000 used in 12 s so far, next free in 1.2 s',
    );
  });

  it('of all limits in a few words, and of what runs', () => {
    expect(usageText([{ ...use, unit: 'requests', used: 3, allowed: 500 }, use])).toBe(
      '3/500 requests, 29,800/30,000 tokens',
    );
    expect(runningText(queue({ maxConcurrency: 20 }, { running: 12 }))).toBe('12 of 20');
    expect(runningText(queue({}, { running: 12 }))).toBe('12');
  });
});
