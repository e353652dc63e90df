import { problemToWire, type Refusal } from '../../protocol/problem-wire.js';
import { problemContentType } from '../problem.js';
import { securityHeaders } from '../security-headers.js';

export function refusal(code: Refusal['code'], detail: string): Response {
  const problem = problemToWire({ code, detail });
  const headers = { ...securityHeaders, 'content-type': problemContentType };
  return new Response(JSON.stringify(problem), { status: problem.status, headers });
}
