import type { FastifyRequest } from 'fastify';
import type { KeyHolder } from '../engine/api-keys.js';
import { anybody, type Caller } from '../protocol/caller.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who calls; null: somebody who needs no key, or who calls what is open. */
    holder: KeyHolder | null;
  }
}

/** On whose behalf a request is made. */
export function callerOf({ holder }: FastifyRequest): Caller {
  if (holder === null) return anybody;
  const { owner, passesCeilings, confinement } = holder;
  return { owner, passesCeilings, confinement };
}
