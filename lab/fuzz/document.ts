/** What of an OpenAPI document leads to requests, and to what their answers must be. */
export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

export interface Operation {
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { schema: Schema }>> };
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { schema: Schema }>> }>
  >;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly schema: Schema;
}

export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly required?: readonly string[];
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
}

export interface Route {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

/** Without event streams, which have no end to wait for. */
export function routesOf({ paths }: OpenApi): Route[] {
  return Object.entries(paths)
    .filter(([path]) => path !== '/api/v1/events')
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        method: method.toUpperCase(),
        path,
        operation,
      })),
    );
}

export function parametersIn(operation: Operation, place: string): Parameter[] {
  return (operation.parameters ?? []).filter((parameter) => parameter.in === place);
}

export function resolved(schema: Schema, document: OpenApi): Schema {
  if (schema.$ref === undefined) return schema;
  const name = schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
  return document.components.schemas[name] ?? {};
}
