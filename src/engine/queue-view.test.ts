import { describe, expect, it } from 'vitest';
import { closed, type Circuit } from '../domain/circuit.js';
import { defaultQueueSettings, type QueueSettings } from '../domain/queue-settings.js';
import { sharedBucket } from '../domain/token-bucket.js';
import type { LiveBucket, LiveQueue } from '../ready/ready-queue.js';
import { queueView } from './queue-view.js';

const none = { high: 0, medium: 0, low: 0 };
const nowMs = Date.UTC(2030, 0, 1);

function see(
  buckets: readonly LiveBucket[],
  settings: Partial<QueueSettings> = {},
  circuit: Circuit = closed,
) {
  const live: LiveQueue = {
    depth: none,
    effectiveDepth: none,
    running: 0,
    oldestAgeMs: null,
    buckets,
  };
  const lastMinute = { started: 0, completed: 0, failed: 0 };
  const seen = { name: 'q', version: 1, inForce: true, circuit, live, backlog: 0, active: null };
  return queueView(
    { ...seen, lastMinute, settings: { ...defaultQueueSettings, ...settings } },
    nowMs,
  );
}

/** A token in a millisecond. */
function bucket(unit: string, tokens: number): LiveBucket {
  const limit = { unit, rate: 1000, perSeconds: 1, burst: 10 };
  return { bucket: `${unit} ${String(tokens)}`, tokens, limit, used: 2.6, countedMs: 500 };
}

describe('a queue as people see it', () => {
  it('R-CH5: tells the least of each unit, and until when all have a token', () => {
    const buckets = [bucket('requests', 3.14159), bucket('tokens', -4), bucket('requests', 0.5)];
    expect(see(buckets).live).toMatchObject({
      tokens: { requests: 0.5, tokens: -4 },
      nextTokenInMs: 5,
    });
    expect(see([bucket('requests', 1)]).live).toMatchObject({
      tokens: { requests: 1 },
      nextTokenInMs: 0,
    });
    expect(see([]).live).toMatchObject({ tokens: {}, nextTokenInMs: null });
  });

  it('R-CH5: tells of each limit what was used, what is allowed and when the next is free', () => {
    const shared = { ...bucket('requests', 1), bucket: sharedBucket('account') };
    const limits = [bucket('tokens', 0).limit, { use: 'account' }];
    const { usage, recoveryFactor } = see([bucket('tokens', 0), shared], { limits }).live;
    const use = { used: 3, allowed: 1_000, perSeconds: 1, countedSeconds: 0.5 };
    expect(usage).toEqual([
      { ...use, limit: null, unit: 'tokens', nextInMs: 1 },
      { ...use, limit: 'account', unit: 'requests', nextInMs: 0 },
    ]);
    expect(recoveryFactor).toBe(1);
    const trouble = { reason: 'unavailable', trips: 0, slots: 40, sinceMs: nowMs } as const;
    const quartered = see([], {}, { kind: 'recovering', step: 0, ...trouble });
    expect(quartered.live.recoveryFactor).toBe(0.25);
    expect(see([], {}, { kind: 'recovering', step: 1, ...trouble }).live.recoveryFactor).toBe(0.5);
  });

  it('R-CH7: a pause whose time is over is none', () => {
    const later = new Date(nowMs + 1);
    const paused = see([], { paused: true, pausedUntil: later });
    expect(paused.settings).toMatchObject({ paused: true, pausedUntil: later });
    expect(paused.live).toMatchObject({ pausedUntil: later, pausedWhy: 'paused by an operator' });
    const over = see([], { paused: true, pausedUntil: new Date(nowMs) });
    expect(over.settings).toMatchObject({ paused: false, pausedUntil: null });
    expect(over.live).toMatchObject({ pausedUntil: null, pausedWhy: null });
    expect(see([], { paused: true }).settings.paused).toBe(true);
  });

  it('R-RE9: an open circuit is a pause with its reason, beside what an operator set', () => {
    const untilMs = nowMs + 30_000;
    const trouble = { reason: 'unavailable', trips: 0, slots: 40 } as const;
    const open: Circuit = { kind: 'open', ...trouble, untilMs, probesAtMs: untilMs };
    const seen = see([], {}, open);
    expect(seen.settings).toMatchObject({ paused: false, pausedUntil: null });
    expect(seen.live).toMatchObject({
      circuit: 'open',
      pausedUntil: new Date(untilMs),
      pausedWhy: 'its service is not available',
    });
    const probed = see([], {}, { ...open, untilMs: nowMs, probesAtMs: nowMs });
    expect(probed.live).toMatchObject({
      circuit: 'half_open',
      pausedUntil: null,
      pausedWhy: 'its service is not available; a few tasks try whether it answers again',
    });
    const recovering = see([], {}, { kind: 'recovering', ...trouble, sinceMs: nowMs, step: 0 });
    expect(recovering.live).toMatchObject({
      circuit: 'half_open',
      pausedUntil: null,
      pausedWhy: null,
    });
  });

  it('R-RE9: of two pauses the longer one is shown', () => {
    const untilMs = nowMs + 30_000;
    const open: Circuit = {
      kind: 'open',
      reason: 'rate_limited',
      trips: 0,
      slots: 1,
      untilMs,
      probesAtMs: untilMs,
    };
    const at = (ms: number) => ({ paused: true, pausedUntil: new Date(nowMs + ms) });
    const whyOf = (settings: Partial<QueueSettings>) => see([], settings, open).live.pausedWhy;
    expect(whyOf({ paused: true })).toBe('paused by an operator');
    expect(whyOf(at(40_000))).toBe('paused by an operator');
    expect(whyOf(at(20_000))).toBe('its service says that it gets too many requests');
    expect(see([], at(20_000), open).live.pausedUntil).toEqual(new Date(untilMs));
  });
});
