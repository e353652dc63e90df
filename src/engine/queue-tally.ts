const bucketMs = 5_000;
const buckets = 12;
const kinds = { started: 0, completed: 1, failed: 2, durationMs: 3 };
const bucketLength = Object.keys(kinds).length;
const rowLength = buckets * bucketLength;

type Kind = keyof typeof kinds;

/**
 * What happened in each of many queues in the last minute, to the nearest five seconds. A queue is a
 * row of one array, 192 bytes, of which the system provides what was written to: with arrays of its
 * own it was 3 kB.
 */
export class QueueTally {
  readonly #maxQueues: number;
  readonly #rows = new Map<string, number>();
  readonly #freeRows: number[] = [];
  readonly #counts: Float32Array;
  /** By row: the bucket that was last counted in. */
  readonly #latest: Int32Array;

  constructor(maxQueues: number) {
    this.#maxQueues = maxQueues;
    this.#counts = new Float32Array(maxQueues * rowLength);
    this.#latest = new Int32Array(maxQueues);
  }

  get size(): number {
    return this.#rows.size;
  }

  /** One that comes when there are too many is not counted. */
  add(queue: string, kind: Exclude<Kind, 'durationMs'>, nowMs: number, durationMs: number): void {
    const row = this.#rows.get(queue) ?? this.#begin(queue, nowMs);
    if (row === null) return;
    this.#advance(row, bucketAt(nowMs));
    this.#count(row, kind, 1);
    if (durationMs > 0) this.#count(row, 'durationMs', durationMs);
  }

  total(queue: string, kind: Kind, nowMs: number): number {
    const row = this.#rows.get(queue);
    if (row === undefined) return 0;
    const latest = this.#latest[row] ?? 0;
    let sum = 0;
    for (let bucket = Math.max(bucketAt(nowMs), latest) - buckets + 1; bucket <= latest; bucket++) {
      sum += this.#counts[placeOf(row, bucket, kind)] ?? 0;
    }
    return sum;
  }

  /** Those of which there is nothing to tell. */
  forgetQuiet(nowMs: number): void {
    const latestQuiet = bucketAt(nowMs) - buckets;
    for (const [queue, row] of this.#rows) {
      if ((this.#latest[row] ?? 0) > latestQuiet) continue;
      this.#rows.delete(queue);
      this.#freeRows.push(row);
    }
  }

  /** Null: there is no row left. */
  #begin(queue: string, nowMs: number): number | null {
    if (this.#rows.size >= this.#maxQueues) return null;
    const row = this.#freeRows.pop() ?? this.#rows.size;
    this.#rows.set(queue, row);
    this.#counts.fill(0, row * rowLength, (row + 1) * rowLength);
    this.#latest[row] = bucketAt(nowMs);
    return row;
  }

  #count(row: number, kind: Kind, amount: number): void {
    const place = placeOf(row, this.#latest[row] ?? 0, kind);
    this.#counts[place] = (this.#counts[place] ?? 0) + amount;
  }

  /** Empties the buckets that time has moved past. */
  #advance(row: number, current: number): void {
    const latest = this.#latest[row] ?? 0;
    if (current <= latest) return;
    for (let bucket = Math.max(latest, current - buckets) + 1; bucket <= current; bucket++) {
      const place = placeOf(row, bucket, 'started');
      this.#counts.fill(0, place, place + bucketLength);
    }
    this.#latest[row] = current;
  }
}

function bucketAt(nowMs: number): number {
  return Math.floor(nowMs / bucketMs);
}

function placeOf(row: number, bucket: number, kind: Kind): number {
  return row * rowLength + (bucket % buckets) * bucketLength + kinds[kind];
}
