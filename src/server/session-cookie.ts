import type { FastifyReply, FastifyRequest } from 'fastify';

const plainName = 'sluice_session';
/** A browser takes this name over TLS only, and from this very host. */
const secureName = `__Host-${plainName}`;

/** The token that a browser brings along; null: it brings none. */
export function sessionToken({ headers }: FastifyRequest): string | null {
  const cookies = (headers.cookie ?? '').split(';').map((cookie) => cookie.trim());
  for (const name of [secureName, plainName]) {
    const found = cookies.find((cookie) => cookie.startsWith(`${name}=`));
    if (found !== undefined) return found.slice(name.length + 1);
  }
  return null;
}

export function setSessionCookie(reply: FastifyReply, token: string, lifeSeconds: number): void {
  const isSecure = reply.request.protocol === 'https';
  const attributes = `Path=/; HttpOnly; SameSite=Strict; Max-Age=${lifeSeconds}`;
  const cookie = isSecure
    ? `${secureName}=${token}; ${attributes}; Secure`
    : `${plainName}=${token}; ${attributes}`;
  reply.header('set-cookie', cookie);
}

export function clearSessionCookie(reply: FastifyReply): void {
  reply.header('set-cookie', [
    `${plainName}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0`,
    `${secureName}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0; Secure`,
  ]);
}
