import { SluiceError, type SluiceErrorOptions } from '../domain/errors.js';
import type { ProblemWire } from '../protocol/problem-schema.js';
import {
  codeOfStatus,
  errorOf,
  isKnownProblem,
  isProblem,
  refusalFromWire,
} from '../protocol/problem-wire.js';
import type { Incoming, OpenSender, Outgoing, Send } from './send.js';

export interface HttpOptions {
  readonly apiKey?: string;
  /** How long an answer may take, besides the time that a call asks the server to wait. */
  readonly timeoutMs?: number;
  /** With every request. */
  readonly headers?: Readonly<Record<string, string>>;
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

/** JSON over HTTP with problem documents. */
export class HttpTransport {
  readonly #base: string;
  readonly #path: string;
  readonly #send: Send;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #timeoutMs: number;

  constructor(
    url: string,
    { apiKey, timeoutMs = defaultTimeoutMs, headers = {} }: HttpOptions,
    openSender: OpenSender,
  ) {
    const { origin, pathname, username, password } = new URL(url);
    this.#path = pathname.replace(/\/+$/, '');
    this.#base = `${origin}${this.#path}`;
    this.#send = openSender(new URL(origin));
    this.#headers = {
      ...headers,
      ...(username === '' ? {} : { authorization: basic(username, password) }),
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    };
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
        await new Promise((resolve) => setTimeout(resolve, delayMs));
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
      const received = await this.#send(this.#outgoing(method, path, call));
      const answer = readAnswer(received, `${this.#base}${path}`, call.fits) as Answer;
      return { status: received.status, answer };
    } catch (error) {
      if (error instanceof SluiceError) throw error;
      signal?.throwIfAborted();
      throw new UnreachableError(`${this.#base} can't be reached`, { cause: error });
    }
  }

  #outgoing(
    method: string,
    path: string,
    { body, query = {}, waitMs = 0, signal }: Call,
  ): Outgoing {
    const search = new URLSearchParams(query).toString();
    return {
      method,
      path: `${this.#path}${path}${search === '' ? '' : `?${search}`}`,
      headers: body === undefined ? this.#headers : { ...this.#headers, ...jsonHeaders },
      body: typeof body === 'object' ? JSON.stringify(body) : body,
      timeoutMs: this.#timeoutMs + waitMs,
      signal,
    };
  }
}

const jsonHeaders = { 'content-type': 'application/json' };

/** No answer of a Sluice server came: whether the call was carried out is not known. */
class UnreachableError extends SluiceError {
  constructor(detail: string, options: SluiceErrorOptions = {}) {
    super('unavailable', detail, options);
  }
}

function readAnswer(
  { status, text, location }: Incoming,
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

/** Credentials in a URL are for a proxy; `fetch` refuses a URL that has them. */
function basic(username: string, password: string): string {
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(credentials)))}`;
}
