import type { FastifyReply, FastifyRequest } from 'fastify';
import { errorStatuses, SluiceError, type ErrorCode } from '../domain/errors.js';
import { codeOfStatus, problemToWire, refusalOf } from '../protocol/problem-wire.js';

export const problemContentType = 'application/problem+json; charset=utf-8';

/** What every error becomes: a problem document with a code of the catalogue. */
export function sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const refusal = refusalOf(toSluiceError(error));
  const problem = problemToWire(refusal, pathOf(request.url));
  if (problem.status >= 500) logFailure(error, refusal.code, request);
  if (problem.status === 503) problem.retry_after_seconds ??= 1;
  if (problem.retry_after_seconds !== undefined) {
    reply.header('retry-after', String(Math.max(1, Math.ceil(problem.retry_after_seconds))));
  }
  reply
    .code(problem.status)
    .header('content-type', problemContentType)
    .serializer(JSON.stringify)
    .send(problem);
}

function logFailure(error: unknown, code: ErrorCode, request: FastifyRequest): void {
  const about = { err: error, method: request.method, url: pathOf(request.url) };
  if (errorStatuses[code] === 503) request.log.warn(about, 'a call could not be served');
  else request.log.error(about, 'a call failed unexpectedly');
}

/** The query may hold what its sender would not want in a log. */
export function pathOf(url: string): string {
  const query = url.indexOf('?');
  return query === -1 ? url : url.slice(0, query);
}

function toSluiceError(error: unknown): SluiceError {
  if (error instanceof SluiceError) return error;
  const status = statusOf(error);
  if (status === null || status >= 500) {
    return new SluiceError('internal', 'The server met an error that it did not expect', {
      cause: error,
    });
  }
  if (isBadJson(error)) {
    return new SluiceError('invalid_json', 'It is not valid JSON, or it holds "__proto__"', {
      cause: error,
    });
  }
  const detail = error instanceof Error ? error.message : String(error);
  return new SluiceError(codeOfStatus(status), detail, { cause: error });
}

/** Fastify's own refusals carry their status. */
function statusOf(error: unknown): number | null {
  if (!(error instanceof Error) || !('statusCode' in error)) return null;
  return typeof error.statusCode === 'number' ? error.statusCode : null;
}

function isBadJson(error: unknown): boolean {
  return (
    error instanceof Error && 'code' in error && error.code === 'FST_ERR_CTP_INVALID_JSON_BODY'
  );
}

/** Before there is a route: the address itself can't be read. */
export function refuseAddress(error: Error, request: FastifyRequest, reply: FastifyReply): void {
  const detail = 'The path is too long, or not well-formed';
  sendProblem(new SluiceError('invalid_request', detail, { cause: error }), request, reply);
}
