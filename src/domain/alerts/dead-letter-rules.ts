import type { AlertRule } from './rule.js';
import { gauge, increase } from './twins.js';

const analysis = [
  'sluice dlq analysis',
  'dead letters by queue, type and error code, with an example',
] as const;
const list = ['sluice dlq list --code CODE', 'the tasks themselves'] as const;
const replay =
  'When the cause is gone, replay them: `sluice dlq replay --code CODE`. It sends 100 a second at most.';

/** Tasks ended as dead letters. */
export const deadLetterRules = {
  dead_letter_rate: {
    severity: 'critical',
    unit: 'tasks',
    threshold: 10,
    forSeconds: 0,
    bad: 'above',
    meaning: 'Many tasks became dead letters in the last minute.',
    value: ({ deadLettersLastMinute }) => deadLettersLastMinute,
    twin: (threshold) => `${increase('sluice_tasks_dlq_total', '1m')} > ${threshold}`,
    look: [analysis, list],
    act: [
      'If they still come, pause the queue while you look: `sluice pause QUEUE`.',
      'Repair what the message names: the input, the handler, the service.',
      replay,
    ],
  },
  dead_letter_new_pattern: {
    severity: 'warning',
    unit: 'events',
    threshold: 0,
    forSeconds: 0,
    bad: 'above',
    meaning: 'Tasks became dead letters in the last 10 minutes in a way that was not seen before.',
    value: ({ newDeadLetterPatterns }) => newDeadLetterPatterns,
    twin: (threshold) => `${gauge('sluice_dead_letter_new_patterns')} > ${threshold}`,
    look: [analysis, list],
    act: ['A new kind of failure often follows a release, or a change of a service.', replay],
  },
  dead_letters_replayable: {
    severity: 'warning',
    unit: 'tasks',
    threshold: 100,
    forSeconds: 0,
    bad: 'above',
    meaning: 'Many dead letters failed for a reason that may have passed, and wait for a replay.',
    value: ({ replayableDeadLetters }) => replayableDeadLetters,
    twin: (threshold) => `${gauge('sluice_dead_letters_replayable')} > ${threshold}`,
    look: [analysis],
    act: [replay, 'What nobody needs any more goes by itself after 30 days.'],
  },
  dead_letters_one_reason: {
    severity: 'warning',
    unit: 'tasks',
    threshold: 50,
    forSeconds: 0,
    bad: 'above',
    meaning: 'Many dead letters have the same error code.',
    label: 'reason',
    values: ({ deadLetterReasons }) => deadLetterReasons,
    twin: (threshold) => `max by (reason) (sluice_dead_letters{reason!=""}) > ${threshold}`,
    look: [analysis, list],
    act: ['One cause, many tasks: repair it once.', replay],
  },
} as const satisfies Record<string, AlertRule>;
