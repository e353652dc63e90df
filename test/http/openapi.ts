import { unknownId, type Answer, type Call } from './support.js';

export interface OpenApi {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

export interface Operation {
  operationId?: string;
  parameters?: { name: string; in: string; schema: Schema }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>;
}

export interface Schema {
  $ref?: string;
  type?: string;
  enum?: unknown[];
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  required?: string[];
  format?: string;
  minimum?: number;
  maximum?: number;
}

/** Every route that the document names, with a URL that fits it and leads to nothing. */
export async function documentedRoutes(call: (call: Call) => Promise<Answer>) {
  const { paths } = (await call({ url: '/openapi.json' })).json<OpenApi>();
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      path,
      method: method.toUpperCase(),
      operation,
      url: path.replace(/\{(task_id|worker_id)\}/, unknownId).replace('{name}', 'nobody-made-this'),
    })),
  );
}
