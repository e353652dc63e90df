import type { AlertSnapshot, LabelledNumber } from './snapshot.js';

export const severities = ['critical', 'warning', 'info'] as const;
export type Severity = (typeof severities)[number];

/** How a value is written for people. */
export type AlertUnit = 'tasks' | 'seconds' | 'share' | 'workers' | 'circuits' | 'events';

interface RuleText {
  /** One sentence: what it means when it fires. */
  readonly meaning: string;
  /** What a person looks at first: commands, each with what it shows. */
  readonly look: readonly (readonly [command: string, shows: string])[];
  /** What a person does about it. */
  readonly act: readonly string[];
}

interface RuleTerms extends RuleText {
  readonly severity: Severity;
  readonly unit: AlertUnit;
  /** Default; `PUT /api/v1/alerts/{name}` changes it. */
  readonly threshold: number;
  /** For how long the value must be beyond the threshold. Default; can be changed like the threshold. */
  readonly forSeconds: number;
  /** Which side of the threshold is bad. */
  readonly bad: 'above' | 'below';
  /** The same condition as an expression of Prometheus. */
  readonly twin: (threshold: number) => string;
}

export interface PlainRule extends RuleTerms {
  readonly label?: undefined;
  /** Null: there is too little to measure, and nothing fires. */
  readonly value: (snapshot: AlertSnapshot) => number | null;
}

/** Fires for each queue, or each code of an error, by itself. */
export interface LabelledRule extends RuleTerms {
  readonly label: 'queue' | 'reason';
  readonly values: (snapshot: AlertSnapshot) => readonly LabelledNumber[];
}

export type AlertRule = PlainRule | LabelledRule;

/** What a rule measures in a snapshot, beyond the threshold or not. A plain rule has one with an empty label. */
export function readingsOf(rule: AlertRule, snapshot: AlertSnapshot): readonly LabelledNumber[] {
  if (rule.label !== undefined) return rule.values(snapshot);
  const value = rule.value(snapshot);
  return value === null ? [] : [{ label: '', value }];
}

export function isBeyond({ bad }: AlertRule, value: number, threshold: number): boolean {
  return bad === 'above' ? value > threshold : value < threshold;
}
