import type { ProblemWire } from '../protocol/problem-schema.js';
import { baseUrl } from './config.js';
import { Store } from './store.js';

/** `lost`: the last call got no answer. */
export const connection = new Store<'good' | 'lost'>('good');

/** The server refused the call, and says why. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Nobody answered. */
export class Unreachable extends Error {}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export async function get<Answer>(path: string, signal?: AbortSignal): Promise<Answer> {
  return JSON.parse(await call('GET', path, undefined, signal)) as Answer;
}

/** `body` is a value, or JSON text that is sent as it is: numbers in it keep all their digits. */
export async function send<Answer = unknown>(
  method: Exclude<Method, 'GET'>,
  path: string,
  body: object | string = {},
): Promise<Answer> {
  const text = await call(method, path, typeof body === 'string' ? body : JSON.stringify(body));
  return (text === '' ? null : JSON.parse(text)) as Answer;
}

export async function call(
  method: Method,
  path: string,
  body?: string,
  signal?: AbortSignal,
): Promise<string> {
  const response = await answered(method, path, body, signal);
  const text = await response.text();
  if (response.ok) return text;
  throw refusalOf(response, text);
}

async function answered(
  method: Method,
  path: string,
  body: string | undefined,
  signal: AbortSignal | undefined,
): Promise<Response> {
  const hasBody = body !== undefined && method !== 'DELETE';
  try {
    const response = await fetch(apiUrl(path), {
      method,
      ...(hasBody ? { body, headers: { 'content-type': 'application/json' } } : {}),
      ...(signal === undefined ? {} : { signal }),
    });
    connection.set(isOutage(response.status) ? 'lost' : 'good');
    if (response.status === 401) signInAgain();
    return response;
  } catch (error) {
    if (signal?.aborted === true) throw error;
    connection.set('lost');
    throw new Unreachable('The server does not answer.', { cause: error });
  }
}

export function apiUrl(path: string): URL {
  return new URL(`api/v1/${path}`, baseUrl);
}

/** What a proxy says while the server behind it is away. */
function isOutage(status: number): boolean {
  return status === 502 || status === 504;
}

function refusalOf({ status, statusText }: Response, text: string): Refused {
  try {
    const { code, title, detail, errors } = JSON.parse(text) as ProblemWire;
    const fields = (errors ?? []).map(({ path, message }) => `${path.slice(1)} ${message}`);
    return new Refused(status, code, [detail, ...fields].join('. ') || title);
  } catch {
    return new Refused(status, 'unknown', statusText === '' ? `Answer ${status}` : statusText);
  }
}

let isReloading = false;

/** The session is over: the same address shows the form to sign in. Once, so that it cannot loop. */
function signInAgain(): void {
  if (isReloading || sessionStorage.getItem('sluice-reloaded') === '1') return;
  isReloading = true;
  sessionStorage.setItem('sluice-reloaded', '1');
  location.reload();
}

export function noteSignedIn(): void {
  sessionStorage.removeItem('sluice-reloaded');
}

/** `a?b=c&d=e` without what is absent or empty. */
export function query(
  path: string,
  parameters: Readonly<Record<string, string | number | null | undefined>>,
): string {
  const given = Object.entries(parameters).filter(
    ([, value]) => value !== null && value !== undefined && value !== '',
  );
  if (given.length === 0) return path;
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return `${path}?${search.toString()}`;
}

export function explain(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
