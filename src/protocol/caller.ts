import { thisProcess, type Actor } from '../domain/audit.js';
import { unconfined, type Confinement } from '../domain/confinement.js';

/** On whose behalf a call is made. */
export interface Caller {
  /** Whose idempotency keys and submission limits count: the API key's, or empty without keys. */
  readonly owner: string;
  /** Its submits pass when all else is refused. */
  readonly passesCeilings: boolean;
  /** What of the queues and tasks it reaches. */
  readonly confinement: Confinement;
  /** Who it is, for the audit. */
  readonly actor: Actor;
}

/** Who needs no key: the program itself, or anybody on this machine. */
export const anybody: Caller = {
  owner: '',
  passesCeilings: false,
  confinement: unconfined,
  actor: thisProcess,
};

/** In an HTTP request of a program: the person that it acts for, percent-encoded. */
export const onBehalfOfHeader = 'sluice-on-behalf-of';
