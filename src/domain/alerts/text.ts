import type { AlertRule, AlertUnit } from './rule.js';

/** `6,201 tasks`, `12.5 %`, `25 min`: for a log line, a message or a table. */
export function valueText(unit: AlertUnit, value: number): string {
  if (unit === 'share') return `${rounded(value * 100)} %`;
  if (unit === 'seconds') return durationText(value);
  return `${rounded(value)} ${value === 1 ? unit.slice(0, -1) : unit}`;
}

/** The sentence of the table, and what was measured. */
export function summaryOf(
  rule: AlertRule,
  { label, value, threshold }: { label: string; value: number | null; threshold: number },
): string {
  if (value === null) return rule.meaning;
  const of = rule.label === undefined ? '' : `${rule.label} ${label}: `;
  const measured = valueText(rule.unit, value);
  return `${rule.meaning} (${of}${measured}; fires ${rule.bad} ${valueText(rule.unit, threshold)})`;
}

function durationText(seconds: number): string {
  if (seconds < 120) return `${rounded(seconds)} s`;
  if (seconds < 7_200) return `${rounded(seconds / 60)} min`;
  return `${rounded(seconds / 3_600)} h`;
}

function rounded(value: number): string {
  return (Math.round(value * 10) / 10).toLocaleString('en-US');
}
