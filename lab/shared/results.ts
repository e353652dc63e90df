import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import Table from 'cli-table3';
import prettier from 'prettier';
import type { Row } from './scenario.js';

export interface ScenarioResult {
  readonly name: string;
  readonly about: string;
  readonly measuredAt: string;
  readonly machine: string;
  readonly rows: readonly Row[];
}

/** What one command of the lab measures, and how its document begins. */
export interface Measurements {
  readonly name: string;
  /** How it is called, before its flags; absent: by `npm run` and its name. */
  readonly command?: string;
  readonly title: string;
  readonly preface: string;
}

const root = join(import.meta.dirname, '../..');

const none: ReadonlyMap<string, string> = new Map();

/** What was measured last of every scenario. Quick runs have a file of their own. */
export class Results {
  readonly #measurements: Measurements;
  readonly #path: string;
  readonly #names: readonly string[];

  constructor(measurements: Measurements, names: readonly string[], quick: boolean) {
    const { name } = measurements;
    this.#measurements = measurements;
    this.#path = join(root, 'lab/results', quick ? `${name}-quick.json` : `${name}.json`);
    this.#names = names;
  }

  get path(): string {
    return this.#path;
  }

  keep(result: ScenarioResult): void {
    const others = this.#read().filter(({ name }) => name !== result.name);
    const place = ({ name }: ScenarioResult) => this.#names.indexOf(name);
    const all = [...others, result].sort((a, b) => place(a) - place(b));
    mkdirSync(dirname(this.#path), { recursive: true });
    writeFileSync(this.#path, `${JSON.stringify({ scenarios: all }, null, 2)}\n`);
  }

  copyTo(path: string): void {
    copyFileSync(this.#path, path);
  }

  /** What was not measured on this machine stays as it is. */
  async writeDocument(): Promise<void> {
    const { name } = this.#measurements;
    const document = join(root, `docs/${name}-measured.md`);
    const written = existsSync(document) ? sectionsOf(readFileSync(document, 'utf8')) : none;
    const measured = new Map(this.#read().map((result) => [result.name, section(result)]));
    const sections = chosenSections(this.#names, measured, written);
    const text = [...heading(this.#measurements), ...sections].join('\n\n');
    writeFileSync(document, await prettier.format(text, { parser: 'markdown', printWidth: 100 }));
  }

  #read(): readonly ScenarioResult[] {
    if (!existsSync(this.#path)) return [];
    const { scenarios } = JSON.parse(readFileSync(this.#path, 'utf8')) as {
      scenarios: ScenarioResult[];
    };
    return scenarios;
  }
}

export function describeMachine(): string {
  const cores = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${cores.length} cores (${cores[0]?.model.trim() ?? 'unknown'}), ${memory} GB, Node ${process.versions.node}`;
}

export function printRows(rows: readonly Row[]): void {
  const table = new Table({
    head: ['what', 'wanted', 'measured', ''],
    style: { head: [], border: [] },
    colWidths: [50, 22, 46, 8],
    wordWrap: true,
  });
  for (const { what, wanted, measured, verdict } of rows) {
    table.push([what, wanted, measured, verdict === 'noted' ? '' : verdict]);
  }
  console.log(table.toString());
}

/** By name. */
export function sectionsOf(document: string): ReadonlyMap<string, string> {
  const [, ...sections] = document.split(/^(?=## )/m);
  return new Map(sections.map((text) => [/^## (.*)$/m.exec(text)?.[1] ?? '', text.trim()]));
}

/** In the order of the names; what is new goes before what is written. */
export function chosenSections(
  names: readonly string[],
  measured: ReadonlyMap<string, string>,
  written: ReadonlyMap<string, string>,
): string[] {
  return names.flatMap((name) => measured.get(name) ?? written.get(name) ?? []);
}

export function callOf({ name, command }: Measurements): string {
  return command ?? `npm run ${name} --`;
}

function heading(measurements: Measurements): readonly string[] {
  const { title, preface } = measurements;
  return [`# ${title}`, `<!-- Written by ${callOf(measurements)} --write -->`, preface];
}

function section({ name, about, measuredAt, machine, rows }: ScenarioResult): string {
  const line = (cells: readonly string[]) => `| ${cells.map(escape).join(' | ')} |`;
  return [
    `## ${name}`,
    `${about.charAt(0).toUpperCase()}${about.slice(1)}.`,
    [
      line(['what', 'wanted', 'measured', '']),
      line(['---', '---', '---', '---']),
      ...rows.map(({ what, wanted, measured, verdict }) =>
        line([what, wanted, measured, verdict === 'noted' ? '' : verdict]),
      ),
    ].join('\n'),
    `Measured ${measuredAt} on ${machine}.`,
  ].join('\n\n');
}

function escape(text: string): string {
  return text.replace(/[|<>*_]/g, (character) => `\\${character}`);
}
