import { Type, type Static } from 'typebox';
import { auditActions } from '../domain/audit.js';
import {
  nextCursorSchema,
  nullable,
  pageProperties,
  request,
  textSchema,
  timestampSchema,
} from './common-schema.js';

const actionSchema = Type.Enum([...auditActions], { description: 'What was done' });

export const listAuditQuerySchema = request('ListAuditQuery', {
  actor: Type.Optional(
    textSchema(
      'The id of a key or session, the name of a person that a program acted for, or `key`, `session`, ' +
        '`local` or `process`',
    ),
  ),
  action: Type.Optional(actionSchema),
  subject: Type.Optional(textSchema('The name or id of what was changed')),
  from: Type.Optional(timestampSchema('Then or later')),
  to: Type.Optional(timestampSchema('Before')),
  ...pageProperties,
});
export type ListAuditQueryWire = Static<typeof listAuditQuerySchema>;

const entrySchema = Type.Object(
  {
    id: Type.Integer(),
    at: timestampSchema('When'),
    actor: Type.Object(
      {
        kind: Type.Enum(['key', 'session', 'local', 'process'], {
          description:
            '`key`: a program with an API key; `session`: a person who signed in; `local`: somebody ' +
            'on the machine of the server or at its database; `process`: the program that embeds it',
        }),
        key_id: nullable(Type.String({ description: 'The API key, also of a session' })),
        key_name: nullable(Type.String()),
        session_id: nullable(Type.String()),
        address: nullable(Type.String({ description: 'From where, of an HTTP request' })),
      },
      { description: 'Who' },
    ),
    action: actionSchema,
    subject: nullable(
      Type.String({ description: 'The name or id of what was changed; null: many at once' }),
    ),
    changes: Type.Record(Type.String(), Type.Object({ from: Type.Unknown(), to: Type.Unknown() }), {
      description: 'By field: what it was, and what it is. Long values are cut',
    }),
    details: Type.Record(Type.String(), Type.Unknown(), {
      description:
        'Of a bulk action its filter and how many it met; `on_behalf_of`: the person that the program acted ' +
        'for, as it says',
    }),
  },
  { title: 'AuditEntry' },
);
export type AuditEntryWire = Static<typeof entrySchema>;

export const auditPageSchema = Type.Object(
  { items: Type.Array(entrySchema), next_cursor: nextCursorSchema },
  { title: 'AuditPage' },
);
export type AuditPageWire = Static<typeof auditPageSchema>;
