import { Compile } from 'typebox/compile';
import { errorStatuses, type ErrorCode } from '../../src/domain/errors.js';
import { problemSchema, type ProblemWire } from '../../src/protocol/problem-schema.js';
import type { OpenApi, Route } from './document.js';
import type { FuzzRequest } from './requests.js';
import type { FuzzAnswer } from './send.js';

const checkProblem = Compile(problemSchema);

/** What nobody outside should learn of. */
const internals = [
  /\bat (?:async )?[\w.<>#$ ]+ ?\(?(?:file:|node:|\/)[^)]*:\d+/,
  /node_modules|\bdist\/|\bsrc\//,
  /\/(?:home|root|tmp|usr|var|work)\//,
  /\bsluice\.\w+/,
  /\b(?:select|insert into|update|delete from)\b.*\b(?:from|values|set|where)\b/is,
  /pg_|SQLSTATE|violates|relation "|column "|syntax error|invalid input|out of range for type/i,
  /ECONN|ENOENT|EVALSHA|WRONGTYPE|NOSCRIPT|\blua\b/i,
  /postgres(?:ql)?:\/\/|rediss?:\/\//,
  /FST_ERR|TypeError|RangeError|undefined|\[object/,
];

/** Holds every answer against the document, the schema of problems and the catalogue of errors. */
export class Judge {
  readonly #document: OpenApi;
  readonly #operations: ReadonlyMap<string, Route['operation']>;
  readonly #checks = new Map<string, ReturnType<typeof Compile> | null>();

  constructor(document: OpenApi, routes: readonly Route[]) {
    this.#document = document;
    this.#operations = new Map(
      routes.map(({ method, path, operation }) => [`${method} ${path}`, operation]),
    );
  }

  /** What is wrong with an answer. */
  faults(request: FuzzRequest, answer: FuzzAnswer): string[] {
    if (answer.status >= 400) return this.#problemFaults(request, answer);
    const asked = request.route.startsWith(`${request.method} `);
    return asked && request.method !== 'HEAD' ? this.#answerFaults(request, answer) : [];
  }

  #problemFaults(request: FuzzRequest, { status, headers, body }: FuzzAnswer): string[] {
    const faults = status >= 500 && !isVerdict(request) ? [`was answered with ${status}`] : [];
    if (headers['content-type'] !== 'application/problem+json; charset=utf-8') {
      return [...faults, `is no problem document: ${headers['content-type'] ?? 'no content type'}`];
    }
    if (request.method === 'HEAD') return faults;
    const problem = parse(body);
    if (!checkProblem.Check(problem)) return [...faults, 'is not as a problem should be'];
    return [...faults, ...codeFaults(problem, status), ...leaks(request, problem)];
  }

  #answerFaults({ route }: FuzzRequest, { status, headers, body }: FuzzAnswer): string[] {
    if (!(headers['content-type'] ?? '').startsWith('application/json')) return [];
    const answer = parse(body);
    if (answer === undefined) return ['is not JSON'];
    const errors = this.#check(route, status)?.Errors(answer) ?? [];
    return errors.slice(0, 3).map((error) => `${error.instancePath} ${error.message}`);
  }

  #check(route: string, status: number): ReturnType<typeof Compile> | null {
    const name = `${route} ${status}`;
    let check = this.#checks.get(name);
    if (check === undefined) {
      const responses = this.#operations.get(route)?.responses;
      const schema = responses?.[String(status)]?.content?.['application/json']?.schema;
      const { components } = this.#document;
      check = schema === undefined ? null : Compile({ ...schema, components });
      this.#checks.set(name, check);
    }
    return check;
  }
}

/** Its 503 is what it is there to say: workers that only register leave work undone. */
function isVerdict({ route }: FuzzRequest): boolean {
  return route === 'GET /healthz/progress';
}

function codeFaults({ code, status }: ProblemWire, answered: number): string[] {
  if (!Object.hasOwn(errorStatuses, code)) return [`has a code that nobody knows: ${code}`];
  const expected = errorStatuses[code as ErrorCode];
  return expected === status && status === answered ? [] : [`says ${status}, and is ${answered}`];
}

/** What it was sent may come back; what it knows may not. */
function leaks({ url, body }: FuzzRequest, { detail, errors = [] }: ProblemWire): string[] {
  const told = [detail, ...errors.flatMap(({ path, message }) => [path, message])].join('\n');
  const sent = `${url}\n${decoded(url)}\n${body?.toString() ?? ''}`;
  return internals.flatMap((pattern) => {
    const [found] = pattern.exec(told) ?? [];
    return found === undefined || sent.includes(found) ? [] : [`tells of what is inside: ${found}`];
  });
}

function decoded(url: string): string {
  try {
    return decodeURIComponent(url);
  } catch {
    return '';
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
