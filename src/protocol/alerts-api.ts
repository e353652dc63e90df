import type { Severity } from '../domain/alerts/rule.js';

export const alertStates = ['firing', 'pending', 'ok', 'silenced'] as const;
export type AlertState = (typeof alertStates)[number];

/** A rule, or one queue or error code for which it is pending or firing. */
export interface AlertView {
  readonly name: string;
  readonly severity: Severity;
  /** `silenced`: no webhook is told that it fires; `since` says whether it would. */
  readonly state: AlertState;
  /** Since when it is pending or firing; null: it is well. */
  readonly since: Date | null;
  /** As measured last. Null: there was too little to measure, or no server evaluates alerts. */
  readonly value: number | null;
  readonly threshold: number;
  readonly forSeconds: number;
  /** It is not evaluated. */
  readonly off: boolean;
  readonly silencedUntil: Date | null;
  readonly silenceNote: string | null;
  readonly summary: string;
  readonly runbook: string;
  readonly labels: Readonly<Record<string, string>>;
}

export interface AlertList {
  readonly items: readonly AlertView[];
  /** Null: no server ever evaluated them. */
  readonly evaluatedAt: Date | null;
}

export interface AlertFilter {
  readonly state?: AlertState;
}

/** What is absent gets the default of the rule. */
export interface AlertDraft {
  readonly threshold?: number;
  readonly forSeconds?: number;
  readonly off?: boolean;
}

export interface AlertSilence {
  /** 0 ends a silence. */
  readonly seconds: number;
  readonly note?: string;
}

export interface AlertApi {
  listAlerts(filter?: AlertFilter): Promise<AlertList>;
  putAlert(name: string, draft: AlertDraft): Promise<AlertView>;
  silenceAlert(name: string, silence: AlertSilence): Promise<AlertView>;
}
