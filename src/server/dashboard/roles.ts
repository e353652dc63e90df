import type { Scope } from '../../domain/scopes.js';
import type { Abilities } from './page.js';

/** `operator` steers work: pauses, replays, cancels, drains. Settings and keys are for `admin`. */
export const roles = ['read', 'operator', 'admin'] as const;
export type Role = (typeof roles)[number];

const scopesOfRole: Readonly<Record<Role, readonly Scope[]>> = {
  read: ['read'],
  operator: ['read', 'submit'],
  admin: ['admin'],
};

/** What an operator may do of all that the HTTP API keeps for the scope `admin`; `*` is one segment. */
const operatorsActions = [
  'POST /api/v1/queues/*/pause',
  'POST /api/v1/queues/*/resume',
  'POST /api/v1/tasks/cancel',
  'POST /api/v1/tasks/replay',
  'POST /api/v1/tasks/reprioritise',
  'POST /api/v1/tasks/*/replay',
  'POST /api/v1/dlq/replay',
  'POST /api/v1/dlq/*/replay',
  'POST /api/v1/workers/*/drain',
].map((action) => new RegExp(`^${action.replaceAll('*', '[^/]+')}$`));

/** The scopes that a role has for this one call. */
export function scopesFor(role: Role, method: string, path: string): readonly Scope[] {
  const isOperators =
    role === 'operator' && operatorsActions.some((action) => action.test(`${method} ${path}`));
  return isOperators ? scopesOfRole.admin : scopesOfRole[role];
}

export function abilitiesOfRole(role: Role): Abilities {
  const operates = role !== 'read';
  return { read: true, submit: operates, operate: operates, admin: role === 'admin' };
}
