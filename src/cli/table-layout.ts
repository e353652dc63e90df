import { stripVTControlCharacters } from 'node:util';

export interface Column {
  readonly title: string;
  /** Numbers stand under each other. */
  readonly align?: 'right';
  /** Where there is no room, its cells are cut down to this many characters. */
  readonly least?: number;
  /** Where there is no room even then, it is left out: 1 goes first. Absent: it stays. */
  readonly spare?: number;
}

/** A column that is shown, by its place in the rows, and how wide it is. */
export interface LaidOut {
  readonly index: number;
  readonly width: number;
}

interface Measured extends LaidOut {
  readonly least: number;
  readonly spare: number;
  readonly isEmpty: boolean;
}

export const gap = 2;

/** Fits a table into so many characters: cuts what may be cut, and leaves out what may be left out. */
export function layOut(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  maxWidth: number,
): readonly LaidOut[] {
  let shown = columns.map((column, index) => measure(column, index, rows));
  const fits = () => totalWidth(shown.map(({ least }) => least)) <= maxWidth;
  if (totalWidth(shown.map(({ width }) => width)) > maxWidth) {
    shown = shown.filter(({ isEmpty }) => !isEmpty);
  }
  while (!fits()) {
    const first = shown.reduce((a, b) => (b.spare < a.spare ? b : a));
    if (first.spare === Infinity) break;
    shown = shown.filter((column) => column !== first);
  }
  let room = maxWidth - totalWidth(shown.map(({ least }) => least));
  return shown.map(({ index, width, least }) => {
    const more = Math.max(0, Math.min(room, width - least));
    room -= more;
    return { index, width: least + more };
  });
}

function measure(
  { title, least = Infinity, spare = Infinity }: Column,
  index: number,
  rows: readonly (readonly string[])[],
): Measured {
  const longest = Math.max(0, ...rows.map((row) => lengthOf(row[index] ?? '')));
  const width = Math.max(title.length, longest);
  return { index, width, least: Math.min(width, least), spare, isEmpty: longest === 0 };
}

function lengthOf(text: string): number {
  return stripVTControlCharacters(text).length;
}

function totalWidth(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width + gap, -gap);
}
