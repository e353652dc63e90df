import { existsSync, readFileSync } from 'node:fs';
import { overlapOf, type Stretch } from '../shared/measure.js';

/** A line that a handler wrote, in the order in which all of them wrote. */
export interface Note {
  readonly what: 'began' | 'ended' | 'stopped' | 'holds';
  readonly taskId: string;
  readonly attempt: number;
  readonly worker: string;
  readonly at: number;
  /** Why its signal fired, where it was stopped. */
  readonly why?: string;
}

export function readNotes(path: string): readonly Note[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n');
  // The last one may be half written.
  return lines.slice(0, -1).map((line) => JSON.parse(line) as Note);
}

/** The tasks as they began; attempts of one that follow each other count once. */
export function orderOf(notes: readonly Note[]): readonly string[] {
  const began = notes.filter(({ what }) => what === 'began').map(({ taskId }) => taskId);
  return began.filter((taskId, index) => taskId !== began[index - 1]);
}

/** When a worker was killed, by its name: what it ran ended then. */
export type Deaths = ReadonlyMap<string, number>;

export function mostAtOnce(notes: readonly Note[], deaths: Deaths = new Map()): number {
  return overlapOf(stretchesOf(notes, deaths), 1, Infinity).most;
}

/** From begin to end of every attempt; one that has not ended lasts for ever. */
export function stretchesOf(notes: readonly Note[], deaths: Deaths = new Map()): Stretch[] {
  const ends = new Map(
    notes.filter(({ what }) => what === 'ended' || what === 'stopped').map((n) => [keyOf(n), n.at]),
  );
  return notes
    .filter(({ what }) => what === 'began')
    .map((began) => ({
      from: began.at,
      to: ends.get(keyOf(began)) ?? deaths.get(began.worker) ?? Infinity,
    }));
}

/** Tasks that began once more after they had ended. */
export function runAgain(notes: readonly Note[]): readonly string[] {
  const ended = new Set<string>();
  const again = new Set<string>();
  for (const { what, taskId } of notes) {
    if (what === 'ended') ended.add(taskId);
    if (what === 'began' && ended.has(taskId)) again.add(taskId);
  }
  return [...again];
}

/** How many tasks each worker ended. */
export function sharesOf(notes: readonly Note[]): ReadonlyMap<string, number> {
  const shares = new Map<string, number>();
  for (const { what, worker } of notes) {
    if (what === 'ended') shares.set(worker, (shares.get(worker) ?? 0) + 1);
  }
  return shares;
}

function keyOf({ taskId, attempt }: Note): string {
  return `${taskId} ${attempt}`;
}
