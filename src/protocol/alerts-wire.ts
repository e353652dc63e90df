import type { AlertDraft, AlertFilter, AlertList, AlertSilence, AlertView } from './alerts-api.js';
import type {
  AlertDraftWire,
  AlertListWire,
  AlertSilenceWire,
  AlertWire,
  ListAlertsQueryWire,
} from './alerts-schema.js';
import { timestampOrNullFromWire, timestampOrNullToWire } from './common-wire.js';
import { defined } from './defined.js';
import { writeRequest, type FieldsOf } from './fields.js';

export function alertToWire(alert: AlertView): AlertWire {
  return {
    name: alert.name,
    severity: alert.severity,
    state: alert.state,
    since: timestampOrNullToWire(alert.since),
    value: alert.value,
    threshold: alert.threshold,
    for_seconds: alert.forSeconds,
    off: alert.off,
    silenced_until: timestampOrNullToWire(alert.silencedUntil),
    silence_note: alert.silenceNote,
    summary: alert.summary,
    runbook: alert.runbook,
    labels: { ...alert.labels },
  };
}

export function alertFromWire(wire: AlertWire): AlertView {
  return {
    name: wire.name,
    severity: wire.severity,
    state: wire.state,
    since: timestampOrNullFromWire(wire.since),
    value: wire.value,
    threshold: wire.threshold,
    forSeconds: wire.for_seconds,
    off: wire.off,
    silencedUntil: timestampOrNullFromWire(wire.silenced_until),
    silenceNote: wire.silence_note,
    summary: wire.summary,
    runbook: wire.runbook,
    labels: wire.labels,
  };
}

export function alertListToWire({ items, evaluatedAt }: AlertList): AlertListWire {
  return {
    items: items.map(alertToWire),
    next_cursor: null,
    evaluated_at: timestampOrNullToWire(evaluatedAt),
  };
}

export function alertListFromWire(wire: AlertListWire): AlertList {
  return {
    items: wire.items.map(alertFromWire),
    evaluatedAt: timestampOrNullFromWire(wire.evaluated_at),
  };
}

export const alertFilterFields = { state: 'state' } as const satisfies FieldsOf<AlertFilter>;

export function alertFilterToWire(filter: AlertFilter): ListAlertsQueryWire {
  return writeRequest(alertFilterFields, filter) as ListAlertsQueryWire;
}

export const alertDraftFields = {
  threshold: 'threshold',
  forSeconds: 'for_seconds',
  off: 'off',
} as const satisfies FieldsOf<AlertDraft>;

export function alertDraftToWire(draft: AlertDraft): AlertDraftWire {
  return writeRequest(alertDraftFields, draft) as AlertDraftWire;
}

export function alertDraftFromWire(wire: AlertDraftWire): AlertDraft {
  return defined({ threshold: wire.threshold, forSeconds: wire.for_seconds, off: wire.off });
}

export const alertSilenceFields = {
  seconds: 'seconds',
  note: 'note',
} as const satisfies FieldsOf<AlertSilence>;

export function alertSilenceToWire(silence: AlertSilence): AlertSilenceWire {
  return writeRequest(alertSilenceFields, silence) as AlertSilenceWire;
}

export function alertSilenceFromWire({ seconds, note }: AlertSilenceWire): AlertSilence {
  return { seconds, ...defined({ note }) };
}
