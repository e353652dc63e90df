import type { FastifyRequest } from 'fastify';
import { isLoopback } from '../runtime/config.js';

/** Which machine a request was meant for, without the port. */
export function isForThisMachine({ headers }: FastifyRequest): boolean {
  const { host } = headers;
  // No browser leaves it out, and only browsers are led astray by a name that changes its address.
  if (host === undefined) return true;
  return isLoopback(
    host
      .replace(/:\d*$/, '')
      .replace(/^\[(.*)\]$/, '$1')
      .toLowerCase(),
  );
}

/** Sent by a page of another server, which did not ask whoever looks at it. */
export function isFromElsewhere(request: FastifyRequest, allowed: readonly string[]): boolean {
  const { origin } = request.headers;
  if (origin === undefined || allowed.includes(origin)) return false;
  return !isOwn(origin, request);
}

/** A page of this server sent it, and its browser says so. */
export function isFromOwnPage(request: FastifyRequest): boolean {
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (site !== undefined) return site === 'same-origin';
  return origin !== undefined && isOwn(origin, request);
}

/** By host and port: what ends TLS in front of this server changes the scheme. */
function isOwn(origin: string, { host }: FastifyRequest): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol, host: sender } = new URL(origin);
  // Read by the same rules: one of them may say the port that goes without saying.
  const own = `${protocol}//${host}`;
  return sender !== '' && URL.canParse(own) && new URL(own).host === sender;
}
