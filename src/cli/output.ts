import { styleText } from 'node:util';
import Table from 'cli-table3';
import { gap, layOut, type Column } from './table-layout.js';

type Style = Parameters<typeof styleText>[0];

export function printLine(text = ''): void {
  process.stdout.write(`${text}\n`);
}

/** On stderr: what a person wants to know beside the answer. */
export function printNote(text: string): void {
  process.stderr.write(`${text}\n`);
}

export function printJson(value: unknown): void {
  printLine(JSON.stringify(value, null, 2));
}

export function paint(style: Style, text: string): string {
  const isPlain = !process.stdout.isTTY || Boolean(process.env.NO_COLOR);
  return isPlain ? text : styleText(style, text);
}

/** Within the width of the terminal, or of COLUMNS; a file or a program gets every column whole. */
export function printTable(columns: readonly Column[], rows: readonly (readonly string[])[]): void {
  for (const line of tableLines(columns, rows, screenWidth())) printLine(line);
}

export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  maxWidth: number,
): string[] {
  const shown = layOut(columns, rows, maxWidth);
  const cellsOf = (row: readonly string[]) => shown.map(({ index }) => row[index] ?? '');
  const table = new Table({
    head: cellsOf(columns.map(({ title }) => paint('dim', title))),
    colAligns: shown.map(({ index }) => columns[index]?.align ?? 'left'),
    colWidths: shown.map(({ width }) => width + gap),
    chars: noLines,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': gap },
  });
  table.push(...rows.map(cellsOf));
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd());
}

function screenWidth(): number {
  if (process.stdout.isTTY) return process.stdout.columns;
  const columns = Number(process.env.COLUMNS);
  return columns > 0 ? columns : Infinity;
}

/** Names and what they are, one to a line. */
export function printFields(fields: readonly (readonly [string, string])[]): void {
  const width = Math.max(...fields.map(([name]) => name.length));
  for (const [name, value] of fields) printLine(`${paint('dim', name.padEnd(width))}  ${value}`);
}

const noLines = Object.fromEntries(
  [
    ...['top', 'top-mid', 'top-left', 'top-right'],
    ...['bottom', 'bottom-mid', 'bottom-left', 'bottom-right'],
    ...['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'],
  ].map((place) => [place, '']),
);
