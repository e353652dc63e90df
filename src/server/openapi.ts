import { STATUS_CODES } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import swagger, { type SwaggerTransform } from '@fastify/swagger';
import type { FastifySchema } from 'fastify';
import type { TSchema } from 'typebox';
import { errorCatalogue } from '../domain/error-catalogue.js';
import { refusalsOfAnyCall, type ErrorCode } from '../domain/errors.js';
import type { RouteScope } from '../domain/scopes.js';
import { problemSchema } from '../protocol/problem-schema.js';
import type { App } from './app-parts.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The codes that only this route refuses with; those of every route are added. */
    refusals?: readonly ErrorCode[];
  }
}

const tags = [
  { name: 'Tasks', description: 'Submit work, follow it, change your mind.' },
  { name: 'Task types', description: 'What submits get that leave it out, as workers define it.' },
  { name: 'Queues', description: 'Streams of tasks that share limits; made on first use.' },
  { name: 'Limits', description: 'Limits that several queues share by name.' },
  { name: 'Statistics', description: 'How it is going.' },
  { name: 'Alerts', description: 'What is wrong now, by rules that can be changed and silenced.' },
  { name: 'Dead letters', description: 'Tasks whose retries are spent, or that no retry helps.' },
  { name: 'Workers', description: 'What workers call.' },
  { name: 'Fleet', description: 'Workers, for people.' },
  { name: 'Keys', description: 'Who may call. Once there is a key, every call needs one.' },
  { name: 'Audit', description: 'Who changed what, and when.' },
  { name: 'Operations', description: 'Health and metrics. None of them changes anything.' },
];

/** How a key is told. The scope that a route needs stands beside it. */
const bearer = 'key';
const securitySchemes = { [bearer]: { type: 'http', scheme: 'bearer' } } as const;

/** The document comes out of the schemas that validate; there is no second source. */
export function registerOpenApi(app: App): void {
  app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Sluice',
        version: 'v1',
        description: 'A durable task queue for work that calls slow, rate-limited services.',
        license: { name: 'MIT', identifier: 'MIT' },
      },
      // Relative to where the document was read from: this very server.
      servers: [{ url: '/', description: 'The server that this document came from' }],
      tags,
      components: { securitySchemes },
    },
    transform: addRefusals,
    transformObject: (document) => {
      if (!('openapiObject' in document)) throw new Error('the document is not OpenAPI 3');
      return hoistSchemas(document.openapiObject) as typeof document.openapiObject;
    },
  });
}

const addRefusals: SwaggerTransform = ({ schema, url, route }) => {
  const described = schema as (FastifySchema & { hide?: boolean }) | undefined;
  if (described === undefined || described.hide === true) return { schema, url };
  const { scope = 'open', refusals = [] } = route.config ?? {};
  const codes = [
    ...new Set([
      ...refusalsOfAnyCall,
      ...accessRefusals(scope),
      ...commonRefusals(described),
      ...refusals,
    ]),
  ];
  const answers = Object.entries(described.response as Record<string, TSchema>);
  const response = {
    ...Object.fromEntries(answers.map(([status, answer]) => [status, named(status, answer)])),
    ...problemResponses(codes),
  };
  const security = scope === 'open' ? [] : [{ [bearer]: [scope] }];
  return { schema: { ...described, response, security }, url };
};

function accessRefusals(scope: RouteScope): ErrorCode[] {
  return scope === 'open' ? [] : ['unauthorized', 'forbidden'];
}

/** Without a name of its own an answer would be called "Default Response". */
function named(status: string, schema: TSchema): object {
  return { ...schema, 'x-response-description': STATUS_CODES[status] };
}

function commonRefusals({ body, querystring, params, headers }: FastifySchema): ErrorCode[] {
  const bodyCodes: ErrorCode[] =
    body === undefined ? [] : ['invalid_json', 'payload_too_large', 'unsupported_media_type'];
  const reads = [body, querystring, params, headers].some((part) => part !== undefined);
  return reads ? ['invalid_request', ...bodyCodes] : bodyCodes;
}

function problemResponses(codes: readonly ErrorCode[]): Record<number, unknown> {
  const statuses = new Set(codes.map((code) => errorCatalogue[code].status));
  return Object.fromEntries(
    [...statuses].map((status) => {
      const same = codes.filter((code) => errorCatalogue[code].status === status);
      const description = same.map((code) => `${code}: ${errorCatalogue[code].title}`).join('; ');
      const content = { 'application/problem+json': { schema: problemSchema } };
      return [status, { description, content }];
    }),
  );
}

interface Document {
  paths?: unknown;
  components?: { schemas?: Record<string, unknown>; securitySchemes?: Record<string, unknown> };
}

/** Every schema with a title becomes a component, so that the document names it once. */
function hoistSchemas(document: Document): Document {
  const schemas: Record<string, unknown> = {};
  const members = (node: Readonly<Record<string, unknown>>): Record<string, unknown> =>
    Object.fromEntries(Object.entries(node).map(([key, member]) => [key, hoist(key, member)]));
  const hoist = (at: string, node: unknown): unknown => {
    if (at === 'example' || at === 'examples') return node;
    if (Array.isArray(node)) return node.map((one) => hoist('', one));
    if (!isRecord(node)) return node;
    // The names of fields are not keywords: one may be called `title` or `example`.
    if (at === 'properties') return mapValues(node, (member) => hoist('', member));
    const { title, ...rest } = opened(withoutExamples(node));
    const hoisted = members(rest);
    if (typeof title !== 'string') return title === undefined ? hoisted : { title, ...hoisted };
    if (title in schemas && !isDeepStrictEqual(schemas[title], hoisted)) {
      throw new Error(`two schemas are called ${title}`);
    }
    schemas[title] = hoisted;
    return { $ref: `#/components/schemas/${title}` };
  };
  const paths = hoist('paths', document.paths);
  const sorted = Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    ...document,
    paths,
    components: { schemas: Object.fromEntries(sorted), securitySchemes },
  };
}

function isRecord(node: unknown): node is Readonly<Record<string, unknown>> {
  return typeof node === 'object' && node !== null;
}

function mapValues(
  node: Readonly<Record<string, unknown>>,
  map: (member: unknown) => unknown,
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(node).map(([key, member]) => [key, map(member)]));
}

/** Examples stand beside the schema of a body; inside of schemas some are left, some are not. */
function withoutExamples(node: Readonly<Record<string, unknown>>): Record<string, unknown> {
  if ('schema' in node) return node;
  return Object.fromEntries(Object.entries(node).filter(([key]) => !/^examples?$/.test(key)));
}

/** An object that names no fields may have any. Generators take one that says nothing for `{}`. */
function opened(node: Record<string, unknown>): Record<string, unknown> {
  const isOpen =
    node.type === 'object' && !('properties' in node) && !('additionalProperties' in node);
  return isOpen ? { ...node, additionalProperties: true } : node;
}
