import { Type, type Static } from 'typebox';
import { severities } from '../domain/alerts/rule.js';
import { alertStates } from './alerts-api.js';
import {
  nameSchema,
  nextCursorSchema,
  nullable,
  request,
  textSchema,
  timestampSchema,
} from './common-schema.js';

const weekSeconds = 7 * 86_400;
const maxThreshold = 1e12;

const stateSchema = Type.Enum([...alertStates], {
  description: 'Silenced: no webhook is told that it fires; `since` says whether it would',
});

export const alertSchema = Type.Object(
  {
    name: Type.String({ description: 'Of the rule', examples: ['queue_depth'] }),
    severity: Type.Enum([...severities]),
    state: stateSchema,
    since: nullable(timestampSchema('Since when it is pending or firing; null: it is well')),
    value: nullable(
      Type.Number({
        description: 'As measured last; null: too little to measure, or no server evaluates alerts',
      }),
    ),
    threshold: Type.Number(),
    for_seconds: Type.Integer({
      description: 'For how long the value must be beyond the threshold',
    }),
    off: Type.Boolean({ description: 'It is not evaluated' }),
    silenced_until: nullable(timestampSchema('Null: it is not silenced')),
    silence_note: nullable(Type.String({ description: 'Why, for people' })),
    summary: Type.String({ description: 'What it means, and what was measured' }),
    runbook: Type.String({ description: 'What to look at and what to do' }),
    labels: Type.Record(Type.String(), Type.String(), {
      description: 'The queue or the error code that it is about',
      examples: [{ queue: 'gpt-4o' }],
    }),
  },
  {
    title: 'Alert',
    description: 'A rule, or one queue or error code for which it is pending or firing.',
  },
);
export type AlertWire = Static<typeof alertSchema>;

export const alertListSchema = Type.Object(
  {
    items: Type.Array(alertSchema),
    next_cursor: nextCursorSchema,
    evaluated_at: nullable(
      timestampSchema(
        'When a server measured last; null: none ever did. Values are kept for 2 minutes, or three intervals',
      ),
    ),
  },
  { title: 'AlertList' },
);
export type AlertListWire = Static<typeof alertListSchema>;

export const alertParamsSchema = Type.Object({ name: nameSchema('The rule') });

export const listAlertsQuerySchema = request('ListAlertsQuery', {
  state: Type.Optional(stateSchema),
});
export type ListAlertsQueryWire = Static<typeof listAlertsQuerySchema>;

export const alertDraftSchema = request(
  'AlertDraft',
  {
    threshold: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: maxThreshold,
        description: 'In the unit of the rule; a share is from 0 to 1',
      }),
    ),
    for_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: weekSeconds,
        description: 'For how long the value must be beyond the threshold',
      }),
    ),
    off: Type.Optional(Type.Boolean({ description: 'True: it is not evaluated' })),
  },
  {
    description: 'How a rule is evaluated. What is absent gets its default: {} resets the rule.',
    examples: [{ threshold: 20_000, for_seconds: 600 }],
  },
);
export type AlertDraftWire = Static<typeof alertDraftSchema>;

export const alertSilenceSchema = request(
  'AlertSilence',
  {
    seconds: Type.Integer({
      minimum: 0,
      maximum: 30 * 86_400,
      description: 'For how long no webhook is told that it fires; 0 ends a silence',
    }),
    note: Type.Optional(textSchema('Why, for people', 500)),
  },
  { examples: [{ seconds: 3_600, note: 'The nightly batch fills the queue' }] },
);
export type AlertSilenceWire = Static<typeof alertSilenceSchema>;
