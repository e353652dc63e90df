import { Type, type Static } from 'typebox';
import { scopes } from '../domain/scopes.js';
import {
  namePatternSchema,
  nextCursorSchema,
  nullable,
  pageProperties,
  request,
  textSchema,
  timestampSchema,
} from './common-schema.js';

/** Ten years: what shall live longer does not expire. */
const longestLifeSeconds = 10 * 365 * 86_400;

const scopeSchema = Type.Enum([...scopes], { description: 'What it may do; admin may all' });
const keyIdSchema = textSchema('Names the key; it is no secret', 64);
const queuePatternSchema = namePatternSchema('A queue, or how names begin, followed by *');
const keyNameSchema = textSchema('For people', 100);

export const keyParamsSchema = Type.Object({ key_id: keyIdSchema });

export const sessionParamsSchema = Type.Object({
  key_id: keyIdSchema,
  session_id: textSchema('Names the session; it is no secret', 64),
});

export const keyDraftSchema = request(
  'KeyDraft',
  {
    name: keyNameSchema,
    scopes: Type.Array(scopeSchema, { minItems: 1, maxItems: scopes.length }),
    expires_in_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: longestLifeSeconds,
        description: 'Absent: it is good until it is revoked',
      }),
    ),
    passes_ceilings: Type.Optional(
      Type.Boolean({ description: 'Its submits pass when a ceiling refuses all others' }),
    ),
    queues: Type.Optional(
      Type.Array(queuePatternSchema, {
        minItems: 1,
        maxItems: 100,
        description: 'The queues that it reaches. Absent: every queue',
      }),
    ),
    own_tasks: Type.Optional(
      Type.Boolean({ description: 'It reaches only tasks that were submitted with it' }),
    ),
  },
  { examples: [{ name: 'ci', scopes: ['submit', 'read'], expires_in_seconds: 7_776_000 }] },
);
export type KeyDraftWire = Static<typeof keyDraftSchema>;

const keyProperties = {
  id: keyIdSchema,
  name: keyNameSchema,
  scopes: Type.Array(scopeSchema),
  passes_ceilings: Type.Boolean({ description: 'Its submits pass when a ceiling refuses others' }),
  queues: nullable(Type.Array(queuePatternSchema, { description: 'Null: every queue' })),
  own_tasks: Type.Boolean({ description: 'It reaches only tasks that were submitted with it' }),
  created_at: timestampSchema('When it was made'),
  expires_at: nullable(timestampSchema('From then on it is not good; null: it does not expire')),
  revoked_at: nullable(timestampSchema('When it was revoked; null: it was not')),
  last_used_at: nullable(timestampSchema('Right to the minute; null: never')),
};

export const keySchema = Type.Object(keyProperties, { title: 'Key' });
export type KeyWire = Static<typeof keySchema>;

export const createdKeySchema = Type.Object(
  {
    ...keyProperties,
    key: Type.String({ description: 'The key itself: told now and never again' }),
    is_first: Type.Boolean({ description: 'From now on every call needs a key' }),
  },
  { title: 'CreatedKey' },
);
export type CreatedKeyWire = Static<typeof createdKeySchema>;

export const listKeysQuerySchema = request('ListKeysQuery', pageProperties);

export const keyPageSchema = Type.Object(
  { items: Type.Array(keySchema), next_cursor: nextCursorSchema },
  { title: 'KeyPage' },
);
export type KeyPageWire = Static<typeof keyPageSchema>;

export const sessionSchema = Type.Object(
  {
    id: textSchema('Names the session; it is no secret', 64),
    key_id: keyIdSchema,
    signed_in_from: nullable(Type.String({ description: 'The address; null: it was not kept' })),
    created_at: timestampSchema('When somebody signed in'),
    expires_at: timestampSchema('From then on it is not good'),
    last_used_at: nullable(timestampSchema('Right to the minute; null: never')),
    ended_at: nullable(timestampSchema('When it was signed out; null: it was not')),
  },
  { title: 'Session' },
);
export type SessionWire = Static<typeof sessionSchema>;

export const sessionListSchema = Type.Object(
  { items: Type.Array(sessionSchema), next_cursor: Type.Null() },
  { title: 'SessionList' },
);
export type SessionListWire = Static<typeof sessionListSchema>;
