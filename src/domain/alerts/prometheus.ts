import { alertNames, ruleOf, runbookOf, type AlertName } from './rules.js';

/** `queue_depth` is `SluiceQueueDepth` there, as is usual. */
export function prometheusName(name: AlertName): string {
  return ['sluice', ...name.split('_')]
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

/** The rules as a file that Prometheus loads, with the default thresholds. */
export function prometheusRules(): string {
  return [
    '# Generated from the table in src/domain/alerts/rules.ts by scripts/generate-docs.mjs.',
    '# Thresholds are the defaults: a change by PUT /api/v1/alerts/{name} does not reach this file.',
    'groups:',
    '  - name: sluice',
    '    rules:',
    ...alertNames.flatMap(ruleLines),
    '',
  ].join('\n');
}

function ruleLines(name: AlertName): string[] {
  const rule = ruleOf(name);
  const of = rule.label === undefined ? '' : ` (${rule.label} {{ $labels.${rule.label} }})`;
  return [
    `      - alert: ${prometheusName(name)}`,
    `        expr: ${JSON.stringify(rule.twin(rule.threshold))}`,
    ...(rule.forSeconds === 0 ? [] : [`        for: ${rule.forSeconds}s`]),
    '        labels:',
    `          severity: ${rule.severity}`,
    '        annotations:',
    `          summary: ${JSON.stringify(`${rule.meaning}${of}`)}`,
    '          value: "{{ $value }}"',
    `          runbook: ${runbookOf(name)}`,
  ];
}
