import { describe, expect, it } from 'vitest';

import { defaultQueueSettings, type QueueSettings } from '../domain/queue-settings.js';
import type { QueueLive, QueueView } from '../protocol/queues-api.js';
import { pauseText } from './queue-text.js';

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
    expect(pauseText(queue({}, { circuit: 'half_open' }))).toBe('recovering');
  });
});
