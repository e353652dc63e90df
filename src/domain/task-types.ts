import { coversQueues, reachesQueue, type Confinement } from './confinement.js';
import { defaultQueue } from './queue-settings.js';
import { compareVersions } from './version.js';

/** At most so many are kept, whatever names people make up. */
export const maxTaskTypes = 10_000;

/** The definition of a task type that a worker tells, as far as it decides which one counts. */
export interface ToldDefinition {
  readonly queue: string | null;
  /** Equal for equal definitions. */
  readonly fingerprint: string;
  /** Of the code that holds it. */
  readonly version: string | null;
  /** Which queues the key reaches that told it; null: all. */
  readonly within: readonly string[] | null;
}

export interface LivingHolders {
  /** Whether a worker lives that handles the type. */
  readonly any: boolean;
  /** Whether one of them runs the version of the definition that counts now. */
  readonly ofPresentVersion: boolean;
}

export type DefinitionVerdict =
  /** It counts from now on. Disputed: a worker that lives may define it differently. */
  | { readonly kind: 'take'; readonly isDisputed: boolean }
  | { readonly kind: 'keep' }
  /** `older`: a worker with a newer version lives. `confined`: it is not for this key to say. */
  | { readonly kind: 'refuse'; readonly why: 'older' | 'confined' };

const take: DefinitionVerdict = { kind: 'take', isDisputed: false };
const keep: DefinitionVerdict = { kind: 'keep' };

/**
 * Which definition of a task type counts: that of the newest version; where versions have no order, or
 * there are none, the one that was told last. An older version counts again once nobody runs the newer one.
 */
export function judgeDefinition(
  present: ToldDefinition | null,
  told: ToldDefinition,
  living: LivingHolders,
): DefinitionVerdict {
  const isSame = present?.fingerprint === told.fingerprint;
  if (!mayDefine(present, told)) return isSame ? keep : { kind: 'refuse', why: 'confined' };
  if (present === null) return take;
  const order = orderOf(told.version, present.version);
  if (isSame) return isKept(present, told, order) ? keep : take;
  if (order === null || order === 0) return { kind: 'take', isDisputed: living.any };
  return order < 0 && living.ofPresentVersion ? { kind: 'refuse', why: 'older' } : take;
}

/**
 * A confined key moves submits only between queues that it reaches: a type that nobody defined goes to the
 * default queue, and what a key defined that reaches more counts for queues that this one does not reach.
 */
function mayDefine(present: ToldDefinition | null, told: ToldDefinition): boolean {
  const reach = reachOf(told);
  if (!reachesQueue(reach, told.queue ?? defaultQueue)) return false;
  return present === null
    ? reachesQueue(reach, defaultQueue)
    : coversQueues(reach, reachOf(present));
}

function reachOf({ within: queues }: ToldDefinition): Confinement {
  return { queues, owner: null };
}

function orderOf(one: string | null, other: string | null): number | null {
  if (one === other) return 0;
  return one === null || other === null ? null : compareVersions(one, other);
}

/** The same definition: only its version or the reach of its key may be news. */
function isKept(present: ToldDefinition, told: ToldDefinition, order: number | null): boolean {
  const isAsWide = coversQueues(reachOf(present), reachOf(told));
  return isAsWide && (present.version === told.version || (order !== null && order < 0));
}
