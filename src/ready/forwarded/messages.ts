import type { JsonValue } from '../../domain/json.js';
import { lineStart } from '../left-line.js';
import type { Position, ReadyQueue, Wake, WindowLook } from '../ready-queue.js';

/** Calls that a process forwards to the leader. The others are the leader's own, or need no call. */
export const forwardedMethods = [
  'offer',
  'feed',
  'leave',
  'look',
  'beginFeed',
  'listBehind',
  'take',
  'confirm',
  'refund',
  'finish',
  'remove',
  'configure',
  'missing',
  'listOut',
  'levels',
  'live',
  'survey',
  'position',
] as const;

export type ForwardedMethod = (typeof forwardedMethods)[number];

/** `survey` answers with what `noteAge` would have heard. */
export interface ForwardedSurvey {
  readonly queues: Awaited<ReturnType<ReadyQueue['survey']>>;
  readonly ages: readonly Parameters<Parameters<ReadyQueue['survey']>[0]>[];
}

/** What processes send to each other, as a JSON list whose first item says the kind. */
export type Message =
  /** To the leader: this process is there and wants to hear the bus. */
  | readonly ['hello']
  /** To the leader: this process ends. */
  | readonly ['bye']
  /** To the leader. The id is the caller's, and is given before the call is sent. */
  | readonly ['call', number, ForwardedMethod, readonly JsonValue[]]
  | readonly ['answer', number, JsonValue]
  | readonly ['failed', number, string]
  /** It does not lead, or not any more. */
  | readonly ['refused', number]
  | readonly ['bus', JsonValue]
  /** From the leader: what a call of the recipient made takeable. It wakes its own first, and passes on the rest. */
  | readonly ['wakes', readonly Wake[]]
  /** From the leader: its ready queue was filled anew and is open. */
  | readonly ['open']
  /** From a leader that gives its lease back: another process may take it at once. */
  | readonly ['vacant'];

/** Before all others: JSON has no number for it. See `lineStart`. */
type SentPosition = Omit<Position, 'eligibleAtMs'> & { readonly eligibleAtMs: number | null };

export function received<At extends Position>(position: At): At {
  const { eligibleAtMs } = position as SentPosition;
  return eligibleAtMs === null ? { ...position, ...lineStart } : position;
}

export function receivedLook({ room, left }: WindowLook): WindowLook {
  return { room, left: left && { ...left, from: received(left.from) } };
}

/** Null: another version of us sent it. */
export function toMessage(value: JsonValue): Message | null {
  return Array.isArray(value) && typeof value[0] === 'string'
    ? (value as unknown as Message)
    : null;
}

export function isForwarded(method: unknown): method is ForwardedMethod {
  return forwardedMethods.includes(method as ForwardedMethod);
}
