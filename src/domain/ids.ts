import { V7Generator } from 'uuidv7';

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

export type TaskId = Branded<'TaskId'>;
export type WorkerId = Branded<'WorkerId'>;
/** An unguessable right to one attempt. Whoever holds it may write; nobody else can. See `leaseNaming`. */
export type Lease = Branded<'Lease'>;

/**
 * UUIDv7s of the instants given: in ascending order also within one millisecond, and when the
 * clock steps back a little. Inputs are partitioned by the day in the id, so the instant should
 * be the database's, not this machine's.
 */
export class IdSource {
  readonly #generator: V7Generator;

  /** Absent: the system's numbers, fetched a few at a time. */
  constructor(random?: { nextUint32(): number }) {
    this.#generator = new V7Generator(random);
  }

  nextTaskId(instantMs: number): TaskId {
    return this.#next(instantMs) as TaskId;
  }

  nextWorkerId(instantMs: number): WorkerId {
    return this.#next(instantMs) as WorkerId;
  }

  #next(instantMs: number): string {
    return textOf(this.#generator.generateOrResetWithTs(Math.floor(instantMs)).bytes);
  }
}

const hyphen = '-'.charCodeAt(0);
const digitCodes = Array.from('0123456789abcdef', (digit) => digit.charCodeAt(0));
/** Where the two digits of each byte stand. */
const digitPlaces = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
/** Of the id that is being written: nothing happens in between. */
const codes = new Array<number>(36).fill(hyphen);

/**
 * Made in one piece. Put together digit by digit, as the library does it, an id is held as all its
 * steps: 0.8 kB instead of 0.1, until somebody reads it.
 */
function textOf(bytes: Readonly<Uint8Array>): string {
  for (let index = 0; index < digitPlaces.length; index += 1) {
    const [byte = 0, place = 0] = [bytes[index], digitPlaces[index]];
    codes[place] = digitCodes[byte >> 4] ?? hyphen;
    codes[place + 1] = digitCodes[byte & 15] ?? hyphen;
  }
  return String.fromCharCode(...codes);
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function isUuid(text: string): boolean {
  return uuidPattern.test(text);
}

/** The instant of an id, in milliseconds. */
export function instantOf(taskId: TaskId): number {
  return Number.parseInt(taskId.slice(0, 8) + taskId.slice(9, 13), 16);
}

/** The first id of an instant: a boundary between partitions, and a cursor by time. */
export function firstIdAt(instantMs: number): TaskId {
  const hex = Math.floor(instantMs).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000` as TaskId;
}
