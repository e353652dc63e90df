import { setTimeout as delay } from 'node:timers/promises';
import { SluiceError, type SluiceErrorOptions } from '../domain/errors.js';
import type { ProblemWire } from '../protocol/problem-schema.js';
import { codeOfStatus, errorOf, refusalFromWire } from '../protocol/problem-wire.js';

export interface HttpOptions {
  readonly apiKey?: string;
  /** How long an answer may take, besides the time that a call asks the server to wait. */
  readonly timeoutMs?: number;
}

interface Call {
  /** An object, or JSON that is written already. */
  readonly body?: object | string;
  readonly query?: Readonly<Record<string, string>>;
  /** How long the server was asked to wait before it answers. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal | undefined;
}

interface Exchange<Answer> {
  readonly status: number;
  readonly answer: Answer;
}

type Waiting = Pick<Call, 'waitMs' | 'signal'>;

const defaultTimeoutMs = 30_000;
/** Before a read is tried again: a restarted server is back soon, or not at once. */
const readRetryDelaysMs = [50, 250];

/** JSON over HTTP with problem documents; keeps its connections open. */
export class HttpTransport {
  readonly #base: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #timeoutMs: number;

  constructor(url: string, { apiKey, timeoutMs = defaultTimeoutMs }: HttpOptions) {
    this.#base = new URL(url).href.replace(/\/+$/, '');
    this.#headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
    this.#timeoutMs = timeoutMs;
  }

  /** Reads change nothing: only they are tried again when the server can't be reached. */
  async get<Answer>(
    path: string,
    query: Call['query'] = {},
    waiting: Waiting = {},
  ): Promise<Answer> {
    for (const delayMs of readRetryDelaysMs) {
      try {
        return (await this.exchange<Answer>('GET', path, { query, ...waiting })).answer;
      } catch (error) {
        if (!(error instanceof UnreachableError)) throw error;
        await delay(delayMs);
      }
    }
    return (await this.exchange<Answer>('GET', path, { query, ...waiting })).answer;
  }

  async post<Answer>(path: string, body: object | string, waiting: Waiting = {}): Promise<Answer> {
    return (await this.exchange<Answer>('POST', path, { body, ...waiting })).answer;
  }

  async put<Answer>(path: string, body: object): Promise<Answer> {
    return (await this.exchange<Answer>('PUT', path, { body })).answer;
  }

  async exchange<Answer>(
    method: string,
    path: string,
    { body, query = {}, waitMs = 0, signal }: Call = {},
  ): Promise<Exchange<Answer>> {
    signal?.throwIfAborted();
    // Not AbortSignal.any: on Node 20 a signal that lives long keeps every one made from it.
    const ending = new AbortController();
    const onAbort = (): void => ending.abort(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    const timer = setTimeout(() => ending.abort(), this.#timeoutMs + waitMs);
    try {
      const search = new URLSearchParams(query).toString();
      const response = await fetch(`${this.#base}${path}${search === '' ? '' : `?${search}`}`, {
        method,
        headers: { ...this.#headers, ...(body === undefined ? {} : jsonHeaders) },
        signal: ending.signal,
        ...(body === undefined
          ? {}
          : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const answer = readAnswer(response, await response.text()) as Answer;
      return { status: response.status, answer };
    } catch (error) {
      if (error instanceof SluiceError) throw error;
      signal?.throwIfAborted();
      throw new UnreachableError(`${this.#base} can't be reached`, { cause: error });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    }
  }
}

const jsonHeaders = { 'content-type': 'application/json' };

/** No answer came: whether the call was carried out is not known. */
class UnreachableError extends SluiceError {
  constructor(detail: string, options: SluiceErrorOptions) {
    super('unavailable', detail, options);
  }
}

function readAnswer(response: Response, text: string): unknown {
  if (response.status === 204) return undefined;
  const answer = parse(text);
  if (response.ok && answer !== undefined) return answer;
  if (isProblem(answer)) throw errorOf(refusalFromWire(answer));
  // An answer of something in between, for example of a proxy.
  throw new SluiceError(
    response.ok ? 'internal' : codeOfStatus(response.status),
    `${response.url} answered ${response.status} with something that is not Sluice's`,
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isProblem(answer: unknown): answer is ProblemWire {
  return (
    typeof answer === 'object' &&
    answer !== null &&
    'code' in answer &&
    typeof answer.code === 'string' &&
    'detail' in answer &&
    typeof answer.detail === 'string' &&
    'status' in answer &&
    typeof answer.status === 'number'
  );
}
