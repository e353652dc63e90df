import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { OpenApi, Schema } from './openapi.js';
import { staleLease, unknownId, useHttp, type Call } from './support.js';

const http = useHttp();

it('AD7: nothing that the OpenAPI document leads a client to send is answered with a 5xx', async () => {
  const document = (await http().call({ url: '/openapi.json' })).json<OpenApi>();
  await fc.assert(
    fc.asyncProperty(anyCall(document), async (call) => {
      const answer = await http().call(call);
      expect(answer.status, `${JSON.stringify(call)} → ${answer.body}`).toBeLessThan(500);
    }),
    { numRuns: 600 },
  );
});

function anyCall(document: OpenApi): fc.Arbitrary<Call> {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  // An event stream has no end to wait for.
  const finite = operations.filter(({ path }) => path !== '/api/v1/events');
  return fc.constantFrom(...finite).chain(({ path, method, operation }) => {
    const parameters = (place: string) =>
      (operation.parameters ?? []).filter((parameter) => parameter.in === place);
    const body = operation.requestBody?.content['application/json']?.schema;
    return fc
      .record({
        segments: fc.record(
          Object.fromEntries(parameters('path').map(({ name }) => [name, anySegment()])),
        ),
        query: fc.record(
          Object.fromEntries(
            parameters('query').map(({ name, schema }) => [name, nearly(schema, document)]),
          ),
          { requiredKeys: [] },
        ),
        body: body === undefined ? fc.constant(undefined) : nearly(body, document),
      })
      .map(({ segments, query, body }) => ({
        method: method.toUpperCase(),
        url: `${filled(path, segments)}${queryText(query, path)}`,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }));
  });
}

/** Mostly what the schema asks for, now and then what it does not. */
function nearly(schema: Schema, document: OpenApi): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 12, arbitrary: fitting(schema, document) },
    { weight: 1, arbitrary: odd() },
  );
}

function fitting(schema: Schema, document: OpenApi): fc.Arbitrary<unknown> {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
    return fitting(document.components.schemas[name] ?? {}, document);
  }
  if (schema.anyOf !== undefined)
    return fc.oneof(...schema.anyOf.map((one) => nearly(one, document)));
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  switch (schema.type) {
    case 'object':
      return anyObject(schema, document);
    case 'array':
      return fc.array(nearly(schema.items ?? {}, document), { maxLength: 3 });
    case 'integer':
      return fc.integer({ min: schema.minimum ?? 0, max: Math.min(schema.maximum ?? 99, 2 ** 31) });
    case 'number':
      return fc.double({ min: schema.minimum ?? 0, max: schema.maximum ?? 99, noNaN: true });
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'string':
      return anyText(schema);
    default:
      return fc.jsonValue();
  }
}

function anyObject(schema: Schema, document: OpenApi): fc.Arbitrary<unknown> {
  if (schema.properties === undefined) {
    const { additionalProperties: units } = schema;
    const member = typeof units === 'object' ? nearly(units, document) : fc.jsonValue();
    return fc.dictionary(
      fc.oneof(fc.constantFrom('tokens', '__proto__', 'constructor'), fc.string()),
      member,
      { maxKeys: 3 },
    );
  }
  const members = Object.entries(schema.properties).map(([name, member]) => [
    name,
    name === 'wait_seconds' ? fc.constant(0) : nearly(member, document),
  ]);
  return fc.record(Object.fromEntries(members) as Record<string, fc.Arbitrary<unknown>>, {
    requiredKeys: schema.required ?? [],
  });
}

function anyText(schema: Schema): fc.Arbitrary<unknown> {
  if (schema.format === 'date-time') {
    return fc.date({ noInvalidDate: true }).map((date) => date.toISOString());
  }
  return fc.oneof(
    fc.constantFrom('a', 'default', unknownId, staleLease, '*', '..', '__proto__', 'constructor'),
    fc.string({ unit: 'grapheme-ascii' }),
    fc.string({ unit: 'binary' }),
  );
}

function odd(): fc.Arbitrary<unknown> {
  return fc.oneof(
    fc.constantFrom(
      null,
      true,
      -1,
      1.5,
      1e308,
      '',
      '\0',
      '\ud800',
      [],
      {},
      [[]],
      'x'.repeat(1_000),
    ),
    fc.jsonValue(),
  );
}

function anySegment(): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(unknownId, 'default', 'a%2Fb') },
    { weight: 1, arbitrary: fc.string().map((text) => encodeURIComponent(text)) },
    { weight: 1, arbitrary: fc.constantFrom('%', '%00', '%ff', '%2e%2e', '%20', 'null', '-1') },
  );
}

function filled(path: string, segments: Record<string, string>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => segments[name] ?? '');
}

/** A wait would be waited for. */
function queryText(query: Record<string, unknown>, path: string): string {
  const waits = path.endsWith('/wait') ? { timeout_seconds: '0' } : {};
  const pairs = Object.entries({ ...query, ...waits }).map(([name, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return `${name}=${encodeURIComponent(text.replace(/\p{Cs}/gu, '?'))}`;
  });
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}
