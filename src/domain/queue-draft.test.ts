import { describe, expect, it } from 'vitest';
import { defaultAgeing, noAgeing } from './priority.js';
import { changedSettings, queueChangeFaults, settingsOf } from './queue-draft.js';
import { defaultQueueSettings } from './queue-settings.js';

const until = new Date('2030-01-31T12:00:00.000Z');
const requests = { unit: 'requests', rate: 500, perSeconds: 60, burst: null };
const tokens = { unit: 'tokens', rate: 30_000, perSeconds: 60, burst: null };
const shared = { use: 'account' };

describe('settingsOf', () => {
  it('gives the default to what is absent', () => {
    expect(settingsOf({})).toEqual(defaultQueueSettings);
    expect(settingsOf({ ageing: { lowToHighMs: 60_000 } }).ageing).toEqual({
      ...defaultAgeing,
      lowToHighMs: 60_000,
    });
  });

  it('understands rates by their usual names, and limits without a burst', () => {
    expect(settingsOf({ limits: { rpm: 500, tpm: 30_000 } }).limits).toEqual([requests, tokens]);
    expect(settingsOf({ limits: { rps: 5 } }).limits).toEqual([
      { unit: 'requests', rate: 5, perSeconds: 1, burst: null },
    ]);
    const { unit, rate, perSeconds } = requests;
    expect(settingsOf({ limits: [{ unit, rate, perSeconds }, shared] }).limits).toEqual([
      requests,
      shared,
    ]);
  });
});

describe('changedSettings', () => {
  const settings = {
    ...defaultQueueSettings,
    limits: [requests, tokens, shared],
    maxConcurrency: 50,
    maxActive: 1_000,
  };

  it('keeps what the change does not name', () => {
    expect(changedSettings(settings, { maxConcurrency: 5 })).toEqual({
      ...settings,
      maxConcurrency: 5,
    });
    expect(changedSettings(settings, { maxActive: null })).toEqual({
      ...settings,
      maxActive: null,
    });
  });

  it('a rate by its name replaces that of its unit; null takes it away', () => {
    expect(changedSettings(settings, { limits: { rpm: 600 } }).limits).toEqual([
      tokens,
      shared,
      { ...requests, rate: 600 },
    ]);
    expect(changedSettings(settings, { limits: { tpm: null } }).limits).toEqual([requests, shared]);
    expect(changedSettings(settings, { limits: {} }).limits).toEqual(settings.limits);
  });

  it('a list of limits replaces all of them', () => {
    expect(changedSettings(settings, { limits: [tokens] }).limits).toEqual([tokens]);
    expect(changedSettings(settings, { limits: [] }).limits).toEqual([]);
  });

  it('changes one threshold of ageing, or turns ageing off', () => {
    const slow = changedSettings(settings, { ageing: { lowToHighMs: null } });
    expect(slow.ageing).toEqual({ ...defaultAgeing, lowToHighMs: null });
    expect(changedSettings(slow, { ageing: null }).ageing).toEqual(noAgeing);
  });

  it('the end of a pause goes with the pause', () => {
    const paused = changedSettings(settings, { paused: true, pausedUntil: until });
    expect(paused).toMatchObject({ paused: true, pausedUntil: until });
    expect(changedSettings(paused, { maxReady: 5 })).toMatchObject({ pausedUntil: until });
    expect(changedSettings(paused, { pausedUntil: null })).toMatchObject({
      paused: true,
      pausedUntil: null,
    });
    expect(changedSettings(paused, { paused: false })).toMatchObject({ pausedUntil: null });
  });
});

describe('queueChangeFaults', () => {
  const faults = (change: Parameters<typeof queueChangeFaults>[1], paused = false) =>
    queueChangeFaults({ ...defaultQueueSettings, paused }, change).map(({ path }) => path);

  it('finds two rates of one unit, and the end of a pause that is none', () => {
    expect(faults({ limits: { rps: 5, rpm: 300, tpm: 1 } })).toEqual(['/limits/rpm']);
    expect(faults({ limits: { rps: null, rpm: 300 } })).toEqual([]);
    expect(faults({ pausedUntil: until })).toEqual(['/paused_until']);
    expect(faults({ pausedUntil: until }, true)).toEqual([]);
    expect(faults({ pausedUntil: null })).toEqual([]);
  });
});
