import { errorCatalogue } from '../domain/error-catalogue.js';
import { refusalsOfAnyCall } from '../domain/errors.js';

/** As much of an OpenAPI document as the pages for people need. */
export interface OpenApiDocument {
  readonly info: { readonly title: string; readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

interface OpenApiOperation {
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: Content };
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
  readonly responses: Readonly<
    Record<string, { readonly description: string; readonly content?: Content }>
  >;
}

type Content = Readonly<Record<string, Media>>;

interface Media {
  readonly schema: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly required?: readonly string[];
  readonly description?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
}

/** What the reference shows, for whatever renders it. */
export interface Outline {
  readonly title: string;
  readonly description: string;
  readonly groups: readonly Group[];
  readonly schemas: readonly NamedSchema[];
  readonly errors: readonly {
    readonly code: string;
    readonly status: number;
    readonly title: string;
  }[];
}

export interface Group {
  readonly name: string;
  readonly description: string;
  readonly operations: readonly Operation[];
}

export interface Operation {
  readonly method: string;
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  /** What a key must allow; null: no key is needed. */
  readonly scope: string | null;
  readonly parameters: readonly Field[];
  readonly body: TypeText | null;
  readonly example: unknown;
  readonly answers: readonly Answer[];
}

export interface Answer {
  readonly status: string;
  readonly type: TypeText;
  /** The codes that it refuses with; empty when it does not refuse. */
  readonly codes: readonly string[];
}

export interface NamedSchema {
  readonly name: string;
  readonly description: string;
  /** Empty when it is an alternative of others: see `type`. */
  readonly fields: readonly Field[];
  readonly type: TypeText;
}

export interface Field {
  readonly name: string;
  readonly type: TypeText;
  readonly required: boolean;
  readonly description: string;
}

/** Text, and names of schemas to link to. */
export type TypeText = readonly (string | { readonly schema: string })[];

export function outlineOf(document: OpenApiDocument): Outline {
  const { schemas } = document.components;
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  return {
    title: document.info.title,
    description: document.info.description,
    groups: document.tags.map(({ name, description }) => ({
      name,
      description,
      operations: operations
        .filter(({ operation }) => operation.tags.includes(name))
        .map(({ path, method, operation }) => operationOf(method, path, operation)),
    })),
    schemas: Object.entries(schemas).map(([name, schema]) => namedSchemaOf(name, schema)),
    errors: Object.entries(errorCatalogue).map(([code, { status, title }]) => ({
      code,
      status,
      title,
    })),
  };
}

function operationOf(method: string, path: string, operation: OpenApiOperation): Operation {
  const content = operation.requestBody?.content ?? {};
  const body = schemaIn(content);
  return {
    method: method.toUpperCase(),
    path,
    summary: operation.summary,
    description: operation.description ?? '',
    scope: Object.values(operation.security?.[0] ?? {})[0]?.[0] ?? null,
    parameters: (operation.parameters ?? []).map(({ name, required, description, schema }) => ({
      name,
      type: typeText(schema),
      required: required ?? false,
      description: sentence(description, schema),
    })),
    body: body === undefined ? null : typeText(body),
    example: exampleIn(content),
    answers: answersOf(operation),
  };
}

/** Without the refusals that any call may get: the reference names those once. */
function answersOf({ responses, security = [] }: OpenApiOperation): Answer[] {
  return Object.entries(responses).flatMap(([status, response]) => {
    const schema = schemaIn(response.content ?? {});
    const type = schema === undefined ? [] : typeText(schema);
    if (Number(status) < 400) return [{ status, type, codes: [] }];
    const codes = codesIn(response.description).filter((code) => !isOfAnyCall(code, security));
    return codes.length === 0 ? [] : [{ status, type, codes }];
  });
}

/** A probe that is answered `unavailable` says what it was asked for. */
function isOfAnyCall(code: string, security: readonly unknown[]): boolean {
  if (code === 'unavailable' && security.length === 0) return false;
  return (refusalsOfAnyCall as readonly string[]).includes(code);
}

/** "code: title; code: title" */
function codesIn(description: string): string[] {
  return [...description.matchAll(/(?:^|; )([a-z_]+): /g)].map(([, code = '']) => code);
}

function schemaIn(content: Content): Schema | undefined {
  return Object.values(content)[0]?.schema;
}

function exampleIn(content: Content): unknown {
  const media = Object.values(content)[0];
  return media?.example ?? Object.values(media?.examples ?? {})[0]?.value;
}

function namedSchemaOf(name: string, schema: Schema): NamedSchema {
  const fields = Object.entries(schema.properties ?? {}).map(([field, member]) => ({
    name: field,
    type: typeText(member),
    required: schema.required?.includes(field) ?? false,
    description: sentence(member.description, member),
  }));
  return { name, description: schema.description ?? '', fields, type: typeText(schema) };
}

function typeText(schema: Schema): TypeText {
  if (schema.$ref !== undefined) return [{ schema: nameOf(schema.$ref) }];
  if (schema.anyOf !== undefined) return joined(schema.anyOf.map(typeText), ' or ');
  if (schema.enum !== undefined) return [schema.enum.map((one) => JSON.stringify(one)).join(' ')];
  if (schema.const !== undefined) return [JSON.stringify(schema.const)];
  if (schema.items !== undefined) return ['array of ', ...typeText(schema.items)];
  if (schema.format === 'date-time') return ['time'];
  if (typeof schema.additionalProperties === 'object') {
    return ['object of ', ...typeText(schema.additionalProperties)];
  }
  const members = Object.entries(schema.properties ?? {});
  if (members.length > 0) {
    const inner = members.map(([name, member]) => [`${name}: `, ...typeText(member)]);
    return ['{ ', ...joined(inner, ', '), ' }'];
  }
  return [schema.type ?? 'any JSON'];
}

function joined(texts: readonly TypeText[], separator: string): TypeText {
  return texts.flatMap((text, index) => (index === 0 ? text : [separator, ...text]));
}

function nameOf(ref: string): string {
  return ref.slice(ref.lastIndexOf('/') + 1);
}

/** What it is, and what it may be. */
function sentence(description: string | undefined, schema: Schema): string {
  const inner = schema.anyOf?.find(({ type }) => type !== 'null') ?? schema;
  const told = description ?? inner.description ?? '';
  const range = rangeOf(inner);
  return [told, range].filter((part) => part !== '').join('. ');
}

function rangeOf({ minimum, maximum, maxLength, maxItems }: Schema): string {
  const number = new Intl.NumberFormat('en');
  if (minimum !== undefined && maximum !== undefined) {
    return `${number.format(minimum)} to ${number.format(maximum)}`;
  }
  if (maxLength !== undefined) return `At most ${number.format(maxLength)} characters`;
  return maxItems === undefined ? '' : `At most ${number.format(maxItems)}`;
}
