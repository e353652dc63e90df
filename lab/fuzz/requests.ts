import fc from 'fast-check';
import { parametersIn, resolved, type OpenApi, type Route, type Schema } from './document.js';
import { hostileBodies, hostileHeaders, hostileNumbers, hostileTexts } from './hostile.js';
import { known } from './known.js';

/** A request as it goes out, but for the ids that only a running server knows. */
export interface FuzzRequest {
  readonly route: string;
  readonly method: string;
  readonly url: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer | null;
  readonly isChunked: boolean;
}

/** All that the document leads to: as it asks for, nearly so, and not at all. */
export function anyRequest(document: OpenApi, routes: readonly Route[]): fc.Arbitrary<FuzzRequest> {
  return fc
    .constantFrom(...routes)
    .chain((route) =>
      fc.record({
        route: fc.constant(`${route.method} ${route.path}`),
        method: weighted(20, fc.constant(route.method), anyMethod),
        url: anyUrl(route, document),
        body: anyBody(route, document),
        headers: anyHeaders(route, document),
        isChunked: weighted(8, fc.constant(false), fc.constant(true)),
      }),
    )
    .map(({ body, headers, ...request }) => ({
      ...request,
      body,
      headers: body === null ? headers : [['content-type', 'application/json'], ...headers],
    }));
}

const anyMethod = fc.constantFrom(
  ...['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'PROPFIND', 'TRACE', 'MKCOL'],
);

function weighted<T>(weight: number, usual: fc.Arbitrary<T>, odd: fc.Arbitrary<T>) {
  return fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: odd });
}

function anyUrl({ path, operation }: Route, document: OpenApi): fc.Arbitrary<string> {
  const segments = parametersIn(operation, 'path').map(({ name }) => [name, anySegment(name)]);
  const query = parametersIn(operation, 'query').map(({ name, schema }) => [
    name,
    isWait(name) ? shortWait : nearly(schema, document).map(asText),
  ]);
  return fc
    .tuple(
      fc.record(Object.fromEntries(segments) as Record<string, fc.Arbitrary<string>>),
      fc.record(Object.fromEntries(query) as Record<string, fc.Arbitrary<string>>, {
        // Without it, a wait would wait for half a minute.
        requiredKeys: parametersIn(operation, 'query')
          .map(({ name }) => name)
          .filter(isWait),
      }),
      weighted(12, fc.constant(''), oddQuery),
    )
    .map(([filled, values, odd]) => {
      const where = path.replace(/\{(\w+)\}/g, (_, name: string) => filled[name] ?? '');
      const pairs = Object.entries(values).map(([name, value]) => `${name}=${encoded(value)}`);
      const search = [...pairs, odd].filter((pair) => pair !== '').join('&');
      return search === '' ? where : `${where}?${search}`;
    });
}

const oddQuery = fc.oneof(
  fc.constantFrom(
    ...['&&==&', 'limit=1&limit=2', 'limit[]=1', 'queue[a]=b', '__proto__=1', 'constructor=1'],
    ...['limit=9007199254740993', 'limit=1e3', 'limit=0x1', 'limit=%31', 'cursor=AAAA', '%', '%ff'],
    Array.from({ length: 1_500 }, (_, n) => `a${n}=b`).join('&'),
  ),
  fc.constantFrom(...hostileTexts).map((text) => `${encoded(text)}=${encoded(text)}`),
  fc.string({ unit: 'binary' }).map((text) => `cursor=${base64url(text)}`),
  fc.constant(`cursor=${base64url(known.task)} `).map((text) => text.trim()),
);

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url');
}

function anySegment(name: string): fc.Arbitrary<string> {
  const right =
    name === 'task_id'
      ? known.tasks
      : name === 'worker_id'
        ? known.workers
        : fc.constantFrom('default', 'fuzz', 'a%2Fb', 'gpt-4o');
  return fc.oneof(
    { weight: 16, arbitrary: right },
    { weight: 1, arbitrary: fc.constantFrom(...hostileTexts).map(encoded) },
    { weight: 1, arbitrary: fc.constantFrom('%', '%00', '%ff', '%2e%2e', '%20', '-1', ';a=b') },
  );
}

/** Half of a surrogate pair can't be encoded. */
function encoded(text: string): string {
  return encodeURIComponent(text.replace(/\p{Cs}/gu, '?')).slice(0, 4_000);
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function anyHeaders(
  { operation }: Route,
  document: OpenApi,
): fc.Arbitrary<FuzzRequest['headers'][number][]> {
  const documented = parametersIn(operation, 'header').map(({ name, schema }) =>
    nearly(schema, document).map((value) => [name, headerText(asText(value))] as const),
  );
  return weighted(
    6,
    fc.constant([]),
    fc.array(fc.oneof(fc.constantFrom(...hostileHeaders), ...documented), { maxLength: 3 }),
  );
}

function headerText(text: string): string {
  return text.replace(/[^\t\x20-\x7e\x80-\xff]/g, '?').slice(0, 2_000);
}

function anyBody({ operation }: Route, document: OpenApi): fc.Arbitrary<Buffer | null> {
  const schema = operation.requestBody?.content['application/json']?.schema;
  const hostile = fc.constantFrom(...hostileBodies);
  if (schema === undefined) return weighted(12, fc.constant(null), hostile);
  const json = nearly(schema, document).map((value) => Buffer.from(written(value)));
  const right = accepted(schema, document).map((value) => Buffer.from(JSON.stringify(value)));
  return fc.oneof(
    { weight: 16, arbitrary: json },
    // Else hardly anything with many fields would ever be let in.
    { weight: 12, arbitrary: right },
    { weight: 2, arbitrary: hostile },
    { weight: 1, arbitrary: fc.tuple(json, fc.nat(200)).map(([whole, n]) => whole.subarray(0, n)) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)) },
    { weight: 1, arbitrary: fc.constant(null) },
  );
}

const numberMark = '@@number:';

/** JSON, with numbers in it that JSON.stringify would not write. */
function written(value: unknown): string {
  return JSON.stringify(value ?? null).replace(/"@@number:([^"]*)"/g, '$1');
}

/** Mostly what the schema asks for, now and then what it does not. */
function nearly(schema: Schema, document: OpenApi): fc.Arbitrary<unknown> {
  return weighted(14, fitting(resolved(schema, document), document), odd);
}

const odd: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, [], {}, [[]], { a: { b: [] } }),
  fc.constantFrom(...hostileTexts),
  fc.constantFrom(...hostileNumbers).map((number) => `${numberMark}${number}`),
  fc.jsonValue(),
);

function fitting(schema: Schema, document: OpenApi): fc.Arbitrary<unknown> {
  if (schema.anyOf !== undefined) {
    return fc.oneof(...schema.anyOf.map((one) => nearly(one, document)));
  }
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  switch (schema.type) {
    case 'object':
      return anyObject(schema, document);
    case 'array':
      return fc.array(nearly(schema.items ?? {}, document), { maxLength: 3 });
    case 'integer':
      return anyNumber(schema).map(Math.trunc);
    case 'number':
      return anyNumber(schema);
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'string':
      return anyText(schema);
    default:
      return fc.oneof(fc.jsonValue(), fc.constantFrom(...hostileTexts));
  }
}

/** What the schema asks for, with a few of its optional fields. */
function accepted(schema: Schema, document: OpenApi): fc.Arbitrary<unknown> {
  const { anyOf, enum: values, type, format, items, ...rest } = resolved(schema, document);
  if (anyOf !== undefined) return fc.oneof(...anyOf.map((one) => accepted(one, document)));
  if (values !== undefined) return fc.constantFrom(...values);
  switch (type) {
    case 'object':
      return acceptedObject(rest, document);
    case 'array':
      return fc.array(accepted(items ?? {}, document), { minLength: 1, maxLength: 3 });
    case 'integer':
    case 'number':
      return anyNumber(rest).map(Math.ceil);
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'string':
      return format === 'date-time'
        ? fc.constantFrom('2026-01-31T12:00:00Z', '2036-01-31T12:00:00.5+02:00')
        : fc.constantFrom('a', 'default', 'fuzz', 'chat', 'gpt-4o');
    default:
      return fc.oneof(fc.jsonValue(), fc.constantFrom(...hostileTexts));
  }
}

function acceptedObject(schema: Schema, document: OpenApi): fc.Arbitrary<unknown> {
  const { properties, required = [], additionalProperties: units } = schema;
  if (properties === undefined) {
    return typeof units === 'object'
      ? fc.dictionary(fc.constantFrom('tokens', 'requests'), accepted(units, document))
      : fc.dictionary(fc.constantFrom('a', 'constructor', ...hostileTexts), fc.jsonValue());
  }
  const optional = Object.keys(properties).filter((name) => !required.includes(name));
  const member = (name: string): fc.Arbitrary<unknown> => {
    if (name === 'wait_seconds') return fc.constant(0);
    if (name === 'task_id') return known.tasks;
    if (name === 'lease') return known.leases;
    return accepted(properties[name] ?? {}, document);
  };
  return fc
    .subarray(optional, { maxLength: Math.min(3, optional.length) })
    .chain((chosen) =>
      fc.record(Object.fromEntries([...required, ...chosen].map((name) => [name, member(name)]))),
    );
}

/** Mostly small, and the ends of what is allowed. */
function anyNumber({ minimum = 0, maximum = 1e9 }: Schema): fc.Arbitrary<number> {
  return fc.oneof(
    fc.constantFrom(minimum, maximum),
    fc.double({ min: minimum, max: Math.min(maximum, minimum + 99), noNaN: true }),
  );
}

function anyObject(schema: Schema, document: OpenApi): fc.Arbitrary<unknown> {
  if (schema.properties === undefined) {
    const { additionalProperties: units } = schema;
    const member = typeof units === 'object' ? nearly(units, document) : odd;
    return fc.dictionary(
      fc.oneof(fc.constantFrom('tokens', 'requests'), fc.constantFrom(...hostileTexts)),
      member,
      { maxKeys: 3 },
    );
  }
  const members = Object.entries(schema.properties).map(([name, member]) => [
    name,
    anyMember(name, member, document),
  ]);
  return fc.record(Object.fromEntries(members) as Record<string, fc.Arbitrary<unknown>>, {
    requiredKeys: [...(schema.required ?? [])],
  });
}

function anyMember(name: string, schema: Schema, document: OpenApi): fc.Arbitrary<unknown> {
  if (name === 'wait_seconds') return fc.constant(0);
  if (name === 'task_id') return weighted(12, known.tasks, odd);
  if (name === 'lease') return weighted(12, known.leases, odd);
  return nearly(schema, document);
}

function isWait(name: string): boolean {
  return name === 'wait_seconds' || name === 'timeout_seconds';
}

const shortWait = fc.constantFrom('0', '0', '0', '-1', '61', '1e9', '');

function anyText(schema: Schema): fc.Arbitrary<unknown> {
  if (schema.format === 'date-time') {
    return fc.oneof(
      fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
      fc.constantFrom(
        ...['2026-01-31T12:00:00Z', '9999-12-31T23:59:59Z', '9999-12-31T23:59:59-23:59'],
        ...['1970-01-01T00:00:00+23:59', '2030-01-01T00:00:00.123456789012Z'],
      ),
    );
  }
  return fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom('a', 'default', 'fuzz', 'chat', 'gpt-4o') },
    { weight: 2, arbitrary: fc.oneof(known.tasks, known.workers) },
    { weight: 2, arbitrary: fc.constantFrom(...hostileTexts) },
    { weight: 1, arbitrary: fc.string({ unit: 'grapheme' }) },
    { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
  );
}
