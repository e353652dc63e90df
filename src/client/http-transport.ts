import { request as requestPlainly } from 'node:http';
import { request as requestSecurely, type RequestOptions } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { urlToHttpOptions } from 'node:url';
import { SluiceError, type SluiceErrorOptions } from '../domain/errors.js';
import type { ProblemWire } from '../protocol/problem-schema.js';
import {
  codeOfStatus,
  errorOf,
  isKnownProblem,
  isProblem,
  refusalFromWire,
} from '../protocol/problem-wire.js';

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
  /**
   * Whether an answer has the shape that Sluice gives to this call. With it, a refusal counts only with a
   * code that is known here: every other answer is that of a proxy, and the call did not arrive.
   */
  readonly fits?: (answer: unknown) => boolean;
}

interface Exchange<Answer> {
  readonly status: number;
  readonly answer: Answer;
}

type Waiting = Pick<Call, 'waitMs' | 'signal' | 'fits'>;

const defaultTimeoutMs = 30_000;
/** Before a read is tried again: a restarted server is back soon, or not at once. */
const readRetryDelaysMs = [50, 250];

/**
 * JSON over HTTP with problem documents; keeps its connections open. Not `fetch`, which makes streams and
 * signals for each call: 300 µs of CPU where this takes 130 (a poll that is answered with 50 tasks).
 */
export class HttpTransport {
  readonly #base: string;
  readonly #path: string;
  readonly #server: RequestOptions;
  readonly #request: typeof requestPlainly;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #timeoutMs: number;

  constructor(url: string, { apiKey, timeoutMs = defaultTimeoutMs }: HttpOptions) {
    const base = new URL(url);
    this.#base = base.href.replace(/\/+$/, '');
    this.#path = base.pathname.replace(/\/+$/, '');
    this.#server = urlToHttpOptions(base);
    this.#request = base.protocol === 'https:' ? requestSecurely : requestPlainly;
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

  async exchange<Answer>(method: string, path: string, call: Call = {}): Promise<Exchange<Answer>> {
    const { signal } = call;
    signal?.throwIfAborted();
    try {
      const received = await this.#send(method, path, call);
      const answer = readAnswer(received, `${this.#base}${path}`, call.fits) as Answer;
      return { status: received.status, answer };
    } catch (error) {
      if (error instanceof SluiceError) throw error;
      signal?.throwIfAborted();
      throw new UnreachableError(`${this.#base} can't be reached`, { cause: error });
    }
  }

  #send(method: string, path: string, call: Call): Promise<Received> {
    const { body, query = {}, waitMs = 0, signal } = call;
    const search = new URLSearchParams(query).toString();
    const options = {
      ...this.#server,
      method,
      path: `${this.#path}${path}${search === '' ? '' : `?${search}`}`,
      headers: { ...this.#headers, ...(body === undefined ? {} : jsonHeaders) },
    };
    return new Promise((resolve, reject) => {
      const request = this.#request(options, (response) => {
        response.setEncoding('utf8');
        let text = '';
        response.on('data', (piece: string) => (text += piece));
        const { statusCode: status = 0, headers } = response;
        response.on('end', () => resolve({ status, text, location: headers.location }));
        response.on('error', reject);
      });
      const end = (why: string) => request.destroy(new Error(why));
      const onAbort = () => end('The call was aborted');
      const timer = setTimeout(end, this.#timeoutMs + waitMs, 'No answer came in time');
      signal?.addEventListener('abort', onAbort, { once: true });
      request.on('error', reject);
      request.on('close', () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
      });
      request.end(typeof body === 'object' ? JSON.stringify(body) : body);
    });
  }
}

interface Received {
  readonly status: number;
  readonly text: string;
  readonly location: string | undefined;
}

const jsonHeaders = { 'content-type': 'application/json' };

/** No answer of a Sluice server came: whether the call was carried out is not known. */
class UnreachableError extends SluiceError {
  constructor(detail: string, options: SluiceErrorOptions = {}) {
    super('unavailable', detail, options);
  }
}

function readAnswer(
  { status, text, location }: Received,
  url: string,
  fits: Call['fits'],
): unknown {
  const answer = status === 204 ? undefined : parse(text);
  const isOk = status >= 200 && status < 300;
  if (isOk && (fits?.(answer) ?? (status === 204 || answer !== undefined))) return answer;
  const isRefusal = fits === undefined ? isProblem(answer) : isKnownProblem(answer, status);
  if (!isOk && isRefusal) throw errorOf(refusalFromWire(answer as ProblemWire));
  // An answer of something in between, for example of a proxy.
  const elsewhere =
    location === undefined
      ? ''
      : `. It points to ${location}: give the address of the server itself`;
  const detail = `${url} answered ${status} with something that is not Sluice's${elsewhere}`;
  if (fits !== undefined) throw new UnreachableError(detail);
  throw new SluiceError(isOk ? 'internal' : codeOfStatus(status), detail);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
