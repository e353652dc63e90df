import type { FastifyRequest } from 'fastify';
import { thisProcess, type Actor } from '../domain/audit.js';
import { SluiceError } from '../domain/errors.js';
import type { KeyHolder } from '../engine/api-keys.js';
import { anybody, onBehalfOfHeader, type Caller } from '../protocol/caller.js';
import { defined } from '../protocol/defined.js';
import { checkPerson } from '../protocol/values.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who calls; null: somebody who needs no key, or who calls what is open. */
    holder: KeyHolder | null;
  }
}

/** On whose behalf a request is made. */
export function callerOf({
  holder,
  ip,
  headers,
}: Pick<FastifyRequest, 'holder' | 'ip' | 'headers'>): Caller {
  const actor = { ...actorOf(holder, ip), ...defined({ onBehalfOf: personIn(headers, holder) }) };
  if (holder === null) return { ...anybody, actor };
  const { owner, passesCeilings, confinement } = holder;
  return { owner, passesCeilings, confinement, actor };
}

/** Without a key it is somebody on this machine: nobody else is let in. */
function actorOf(holder: KeyHolder | null, ip: string): Actor {
  if (holder === null) return { ...thisProcess, kind: 'local', address: ip };
  const { owner: keyId, name: keyName, keyId: id, address = ip } = holder;
  const session = isSession(holder);
  return {
    kind: session ? 'session' : 'key',
    keyId,
    keyName,
    sessionId: session ? id : null,
    address,
  };
}

function isSession({ owner, keyId }: KeyHolder): boolean {
  return owner !== keyId;
}

/**
 * A program names the person that it acts for. A browser never does: whoever signed in acts in their own name, and a
 * page must not speak for somebody else.
 */
function personIn(headers: FastifyRequest['headers'], holder: KeyHolder | null) {
  const told = headers[onBehalfOfHeader];
  if (told === undefined) return undefined;
  if (headers['sec-fetch-site'] !== undefined || (holder !== null && isSession(holder))) {
    throw new SluiceError(
      'forbidden',
      `Only programs send ${onBehalfOfHeader}. A browser acts in the name of whoever signed in.`,
    );
  }
  return checkPerson(`/headers/${onBehalfOfHeader}`, decoded(String(told)));
}

/** What is not percent-encoded is refused as what it is not: a name. */
function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
