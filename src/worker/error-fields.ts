import { isErrorCode } from './error-code.js';

export type Fields = Readonly<Record<string, unknown>>;

/** Deeper causes are not the service's any more; and causes may form a ring. */
const maxCauses = 5;
const maxBodyLength = 16_384;

/** Codes that HTTP clients give to any answer that is an error: the status says more. */
const codesOfClients: ReadonlySet<string> = new Set([
  'ERR_BAD_REQUEST',
  'ERR_BAD_RESPONSE',
  'ERR_NON_2XX_3XX_RESPONSE',
  'UND_ERR_RESPONSE',
  'UND_ERR_RESPONSE_STATUS_CODE',
]);

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
}

/** What was thrown, and its causes. */
export function causesOf(thrown: unknown): Fields[] {
  const chain: Fields[] = [];
  let next = thrown;
  while (isObject(next) && chain.length < maxCauses) {
    chain.push(next);
    next = next.cause;
  }
  return chain;
}

export function statusOf({ status, statusCode, response }: Fields): number | null {
  const within = isObject(response) ? [response.status, response.statusCode] : [];
  return [status, statusCode, ...within].find(isErrorStatus) ?? null;
}

/** `BadRequestError`, also of an SDK that does not set `name`; null: it says nothing. */
export function classOf(error: Fields): string | null {
  const { constructor: made, name } = error;
  const names = [typeof made === 'function' ? made.name : '', name];
  return names.filter(isErrorCode).find((one) => !plainClasses.has(one)) ?? null;
}

const plainClasses: ReadonlySet<string> = new Set(['Error', 'Object', 'Response']);

/**
 * What the service called it: `insufficient_quota`, `context_length_exceeded`. In the error's own
 * `code`, as the SDK of OpenAI has it, else in the body of the answer.
 */
export function codeOfService(error: Fields): string | null {
  return [error.code, ...bodiesOf(error).map(({ code }) => code)].find(isOwnCode) ?? null;
}

/** A class of errors, as Anthropic names them: `invalid_request_error`. */
export function typeOfService(error: Fields): string | null {
  return [error.type, ...bodiesOf(error).map(({ type }) => type)].find(isErrorCode) ?? null;
}

/** What axios, got and undici call any answer that is an error. */
export function codeOfClient({ code }: Fields): string | null {
  return isErrorCode(code) && codesOfClients.has(code) ? code : null;
}

/** `{ error: { code, type } }` as OpenAI and Anthropic answer, wherever the client keeps it. */
function bodiesOf({ error, body, response }: Fields): Fields[] {
  const within = isObject(response) ? [response.data, response.body] : [];
  return [error, body, ...within].map(parsed).flatMap((found) => {
    if (!isObject(found)) return [];
    return isObject(found.error) ? [found.error] : [found];
  });
}

function parsed(body: unknown): unknown {
  if (typeof body !== 'string' || !body.startsWith('{') || body.length > maxBodyLength) return body;
  try {
    return JSON.parse(body) as unknown;
  } catch {
    return null;
  }
}

function isOwnCode(value: unknown): value is string {
  return isErrorCode(value) && !codesOfClients.has(value);
}

function isErrorStatus(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 400 && value <= 599;
}
