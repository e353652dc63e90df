import { spreadOf } from '../shared/measure.js';
import { percent, seconds, type Row } from '../shared/scenario.js';
import type { CaseScenario } from './case.js';
import { measure, type Measures, type Quantiles } from './measures.js';
import type { Ran } from './work.js';

/** What was measured last of one scenario. */
export interface ScenarioReport {
  readonly name: CaseScenario['name'];
  readonly about: string;
  readonly measuredAt: string;
  readonly machine: string;
  readonly command: string;
  readonly timeScale: number;
  readonly seeds: readonly SeedReport[];
  /** Of the first seed, for the charts. */
  readonly runs: Readonly<Record<string, readonly Ran[]>>;
}

export interface SeedReport {
  readonly seed: number;
  readonly rows: readonly Row[];
  readonly measures: Readonly<Record<string, Measures>>;
}

export type Grid = readonly (readonly string[])[];

/** Of the case study as it was published. */
export const published = {
  batch: { durationSeconds: 179, perSecond: 5.6 },
  sluice: { durationSeconds: 46, perSecond: 23.3 },
  limited: { share: 0.96 },
} as const;

/** The three runs beside each other, and beside what was published of them. */
export function compareGrid(reports: readonly ScenarioReport[]): Grid {
  const of = (
    name: string,
    text: (measures: Measures) => number,
    show: (value: number) => string,
  ) => spread(measuresOf(reports, name).map(text), show);
  const line = (
    what: string,
    text: (measures: Measures) => number,
    show: (value: number) => string,
    before: string,
    after: string,
  ) => [
    what,
    of('batch', text, show),
    before,
    of('sluice', text, show),
    after,
    of('limited', text, show),
    '',
  ];
  const { batch, sluice } = published;
  const pace = (value: number) => value.toFixed(1);
  return [
    ['', 'batch', 'published', 'Sluice 8 × 50', 'published', '20 a minute per model', 'published'],
    line(
      'duration',
      (m) => m.durationMs,
      seconds1,
      `${batch.durationSeconds} s`,
      `${sluice.durationSeconds} s`,
    ),
    line(
      'tasks per second',
      (m) => m.perSecond,
      pace,
      String(batch.perSecond),
      String(sluice.perSecond),
    ),
    line('sustained, tasks per second', (m) => m.sustainedPerSecond, pace, '', ''),
    line(
      'swing of that',
      (m) => m.swing.deviation,
      (value) => percent(value, 0),
      '',
      '',
    ),
    ...quantileLines('wait', (m) => m.waitMs, line),
    ...quantileLines('until answered', (m) => m.answerMs, line),
    shareLine(reports),
  ].filter(([, ...cells]) => cells.some((cell, column) => column % 2 === 0 && cell !== ''));
}

type Line = (
  what: string,
  text: (measures: Measures) => number,
  show: (value: number) => string,
  before: string,
  after: string,
) => string[];

function quantileLines(what: string, of: (measures: Measures) => Quantiles, line: Line): Grid {
  return (['p50', 'p95', 'p99'] as const).map((name) =>
    line(`${what}, ${name}`, (measures) => of(measures)[name], seconds1, '', ''),
  );
}

function shareLine(reports: readonly ScenarioReport[]): string[] {
  const shares = rowsOf(reports, 'limited').flatMap(({ numbers }) => numbers.meanShare ?? []);
  const share = spread(shares, (value) => percent(value, 2));
  const before = share === '' ? '' : percent(published.limited.share, 0);
  return ['share of the allowed rate', '', '', '', '', share, before];
}

export function toMarkdown(reports: readonly ScenarioReport[]): string {
  return [
    '## In short',
    markdownTable(compareGrid(reports)),
    ...charts(reports),
    ...reports.map(section),
  ].join('\n\n');
}

function charts(reports: readonly ScenarioReport[]): readonly string[] {
  const has = (name: string) => reports.some((report) => report.name === name);
  const image = (file: string, text: string) => `[![${text}](lab/${file}.svg)](lab/${file}.png)`;
  return [
    ...(has('batch') && has('sluice')
      ? [
          image('throughput', 'Tasks finished per second over time, one panel for each run'),
          image('waterfall', 'Every task as a line: how long it waited, ran, and was held up'),
        ]
      : []),
    ...(has('spiral') ? [image('spiral', 'The backlog over time, with a burst')] : []),
    ...(has('outage') ? [image('outage', 'The backlog over time, with an outage')] : []),
  ];
}

function section({ name, about, measuredAt, machine, command, seeds }: ScenarioReport): string {
  const [first] = seeds;
  const others = seeds.length === 1 ? '' : ` The rows are of seed ${first?.seed ?? 0}.`;
  return [
    `## ${name}`,
    `${about.charAt(0).toUpperCase()}${about.slice(1)}.`,
    markdownTable([
      ['what', 'wanted', 'measured', ''],
      ...(first?.rows ?? []).map(({ what, wanted, measured, verdict }) => {
        return [what, wanted, measured, verdict === 'noted' ? '' : verdict];
      }),
    ]),
    `Measured ${measuredAt} on ${machine}, with \`${command}\`.${others}`,
  ].join('\n\n');
}

function markdownTable([head = [], ...rows]: Grid): string {
  const line = (cells: readonly string[]) => `| ${cells.map(escape).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function escape(cell: string): string {
  return cell.replace(/[|<>*_]/g, (character) => `\\${character}`);
}

function measuresOf(reports: readonly ScenarioReport[], name: string): readonly Measures[] {
  const report = reports.find((each) => each.name === name);
  return (report?.seeds ?? []).flatMap(({ measures }) => measures[name] ?? []);
}

function rowsOf(reports: readonly ScenarioReport[], name: string): readonly Row[] {
  const report = reports.find((each) => each.name === name);
  return (report?.seeds ?? []).flatMap(({ rows }) => rows);
}

/** The median, and from where to where it goes over the seeds. */
function spread(values: readonly number[], show: (value: number) => string): string {
  if (values.length === 0) return '';
  const { median, least, most } = spreadOf(values);
  return values.length === 1 ? show(median) : `${show(median)} (${show(least)} to ${show(most)})`;
}

const seconds1 = (value: number): string => seconds(value);

export function seedReport(
  seed: number,
  rows: readonly Row[],
  runs: readonly { readonly title: string; readonly rans: readonly Ran[] }[],
): SeedReport {
  const measures = Object.fromEntries(runs.map(({ title, rans }) => [title, measure(rans)]));
  return { seed, rows, measures };
}
