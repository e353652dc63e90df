import { styleText } from 'node:util';
import Table from 'cli-table3';

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

export interface Column {
  readonly title: string;
  /** Numbers stand under each other. */
  readonly align?: 'right';
}

export function printTable(columns: readonly Column[], rows: readonly (readonly string[])[]): void {
  const table = new Table({
    head: columns.map(({ title }) => paint('dim', title)),
    colAligns: columns.map(({ align }) => align ?? 'left'),
    chars: noLines,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 2 },
  });
  table.push(...rows.map((row) => [...row]));
  for (const line of table.toString().split('\n')) printLine(line.trimEnd());
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
