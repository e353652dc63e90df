import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { SluiceError } from '../domain/errors.js';
import { pathOf } from './problem.js';

/** Which methods a path has, for those who ask with another one. */
export class KnownRoutes {
  readonly #methods = new Map<string, Set<string>>();

  watch(app: FastifyInstance): void {
    app.addHook('onRoute', ({ method, url }) => {
      const known = this.#methods.get(url) ?? new Set();
      for (const name of [method].flat()) known.add(name);
      this.#methods.set(url, known);
    });
  }

  /** Before the body is read: whatever is sent to the wrong place is not looked at. */
  refuse(request: FastifyRequest, reply: FastifyReply): void {
    const methods = this.#find(pathOf(request.url));
    if (methods.length === 0) {
      throw new SluiceError('route_not_found', `There is no ${pathOf(request.url)}`);
    }
    reply.header('allow', methods.join(', '));
    if (request.method !== 'OPTIONS') {
      throw new SluiceError('method_not_allowed', `It has ${methods.join(', ')}`);
    }
    reply.code(204).send();
  }

  #find(path: string): string[] {
    const segments = path.split('/');
    const found = [...this.#methods].filter(([pattern]) => matches(pattern.split('/'), segments));
    return [...new Set(found.flatMap(([, methods]) => [...methods]))].sort();
  }
}

function matches(pattern: readonly string[], segments: readonly string[]): boolean {
  return (
    pattern.length === segments.length &&
    pattern.every((part, index) => part === segments[index] || isFilled(part, segments[index]))
  );
}

function isFilled(part: string, segment: string | undefined): boolean {
  return part.startsWith(':') && segment !== undefined && segment !== '';
}
