import { isBeyond, readingsOf, type AlertRule } from './rule.js';
import type { AlertSnapshot, LabelledNumber } from './snapshot.js';

/** What may be changed of a rule. Null: as the table says. */
export interface AlertSettings {
  readonly threshold: number | null;
  readonly forSeconds: number | null;
  readonly off: boolean;
  readonly silencedUntilMs: number | null;
}

export const defaultAlertSettings: AlertSettings = {
  threshold: null,
  forSeconds: null,
  off: false,
  silencedUntilMs: null,
};

/** A rule that is beyond its threshold, for one queue or reason or for all. Absent: it is well. */
export interface ActiveAlert {
  /** The queue or the reason; empty: the rule has no label. */
  readonly label: string;
  readonly state: 'pending' | 'firing';
  /** When it came into this state. */
  readonly sinceMs: number;
  /** Whether a webhook was told that it fires. Then it is also told that it is over. */
  readonly isTold: boolean;
}

export interface AlertStep {
  readonly label: string;
  readonly value: number | null;
  /** Null: it was well. */
  readonly before: ActiveAlert | null;
  /** Null: it is well now. */
  readonly next: ActiveAlert | null;
  readonly isChanged: boolean;
  readonly event: 'fired' | 'resolved' | null;
  /** What a webhook is told. A silence holds back that an alert fires, never that it is over. */
  readonly tell: 'firing' | 'resolved' | null;
}

export interface AlertTerms {
  readonly settings: AlertSettings;
  readonly nowMs: number;
  /** Whether there is a webhook to tell. */
  readonly tells: boolean;
}

/** Queues or reasons that are pending or firing at once, of one rule. */
export const maxActiveLabels = 20;

/** What becomes of a rule: one step for each label that was active or is now. */
export function stepAlert(
  rule: AlertRule,
  snapshot: AlertSnapshot,
  before: readonly ActiveAlert[],
  terms: AlertTerms,
): AlertStep[] {
  const { settings } = terms;
  const threshold = settings.threshold ?? rule.threshold;
  const readings = readingsOf(rule, snapshot);
  const beyond = settings.off
    ? []
    : readings.filter(({ value }) => isBeyond(rule, value, threshold));
  const known = new Map(before.map((alert) => [alert.label, alert]));
  const bad = new Map(
    boundLabels(rule, beyond, known).map(({ label, value }) => [label, value] as const),
  );
  const values = new Map(readings.map(({ label, value }) => [label, value]));
  return [...new Set([...known.keys(), ...bad.keys()])].map((label) => {
    const value = values.get(label) ?? null;
    const alert = known.get(label) ?? null;
    return stepOne(rule, { label, value, isBad: bad.has(label) }, alert, terms);
  });
}

/** Those that are active stay among them, so that none is over only because others are worse. */
function boundLabels(
  { bad }: AlertRule,
  beyond: readonly LabelledNumber[],
  known: ReadonlyMap<string, ActiveAlert>,
): readonly LabelledNumber[] {
  if (beyond.length <= maxActiveLabels) return beyond;
  const sign = bad === 'above' ? -1 : 1;
  return beyond
    .toSorted(
      (a, b) =>
        Number(known.has(b.label)) - Number(known.has(a.label)) || sign * (a.value - b.value),
    )
    .slice(0, maxActiveLabels);
}

interface Reading {
  readonly label: string;
  readonly value: number | null;
  readonly isBad: boolean;
}

function stepOne(
  rule: AlertRule,
  { label, value, isBad }: Reading,
  before: ActiveAlert | null,
  terms: AlertTerms,
): AlertStep {
  if (!isBad) {
    const event = before?.state === 'firing' ? 'resolved' : null;
    const tell = before?.isTold === true ? 'resolved' : null;
    return { label, value, before, next: null, isChanged: before !== null, event, tell };
  }
  const { settings, nowMs } = terms;
  const forMs = (settings.forSeconds ?? rule.forSeconds) * 1000;
  const wasFiring = before?.state === 'firing';
  const pendingSinceMs = before?.sinceMs ?? nowMs;
  if (!wasFiring && nowMs - pendingSinceMs < forMs) {
    const next = { label, state: 'pending', sinceMs: pendingSinceMs, isTold: false } as const;
    return { label, value, before, next, isChanged: before === null, event: null, tell: null };
  }
  const isTold = before?.isTold === true;
  const tells = terms.tells && !isTold && !isSilenced(settings, nowMs);
  const sinceMs = wasFiring ? before.sinceMs : nowMs;
  return {
    label,
    value,
    before,
    next: { label, state: 'firing', sinceMs, isTold: isTold || tells },
    isChanged: !wasFiring || tells,
    event: wasFiring ? null : 'fired',
    tell: tells ? 'firing' : null,
  };
}

export function isSilenced({ silencedUntilMs }: AlertSettings, nowMs: number): boolean {
  return silencedUntilMs !== null && silencedUntilMs > nowMs;
}
