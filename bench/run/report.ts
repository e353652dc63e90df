import { contenders, titleOf } from './contenders.js';
import { judge, type Judged } from './goals.js';
import { measureNames, measures, show, type MeasureName, type Run } from './measures.js';
import type { Sizes } from './run-contender.js';
import { contendersIn, leadOf, summarize, type Spread, type Summary } from './summary.js';

export interface Report {
  readonly measuredAt: string;
  readonly machine: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly sizes: Sizes;
  readonly rounds: number;
  /** Every one of them: no number is picked. */
  readonly runs: readonly Run[];
  readonly summary: Readonly<Record<string, Summary>>;
  readonly goals: readonly Judged[];
}

export type Grid = readonly (readonly string[])[];

export function composeReport(
  about: Pick<Report, 'measuredAt' | 'machine' | 'versions' | 'sizes' | 'rounds'>,
  runs: readonly Run[],
): Report {
  const summary = contendersIn(runs).map((name) => [name, summarize(runs, name)] as const);
  return { ...about, runs, summary: Object.fromEntries(summary), goals: judge(runs) };
}

const rates: readonly MeasureName[] = ['bulk', 'process', 'submit', 'startP50', 'startP99'];
const costs: readonly MeasureName[] = ['ownCpu', 'serviceCpu', 'ownMemory', 'serviceMemory'];

export function ratesGrid(report: Report): Grid {
  return gridOf(report, rates);
}

export function costsGrid(report: Report): Grid {
  return gridOf(report, costs);
}

function gridOf({ summary }: Report, names: readonly MeasureName[]): Grid {
  const head = names.map((name) => `${measures[name].title}, ${measures[name].unit}`);
  const rows = Object.entries(summary).map(([contender, spreads]) => [
    titleOf(contender),
    ...names.map((name) => showSpread(name, spreads[name])),
  ]);
  return [['', ...head], ...rows];
}

export function goalsGrid({ goals }: Report): Grid {
  return [
    [
      'what',
      'Sluice',
      'against',
      'wanted',
      'ratio',
      'spread',
      '',
      'of the limit: wanted',
      'reached',
    ],
    ...goals.map(({ measure, ours, theirs, wanted, ratio, verdict, ofLimit }) => [
      measures[measure].title,
      titleOf(ours),
      titleOf(theirs),
      `${measures[measure].better === 'more' ? '≥' : '≤'} ${wanted}`,
      ratio.median.toFixed(2),
      `${ratio.least.toFixed(2)}–${ratio.most.toFixed(2)}`,
      verdict,
      percent(ofLimit?.wanted),
      percent(ofLimit?.reached),
    ]),
  ];
}

function percent(share: number | undefined): string {
  return share === undefined ? '–' : `${Math.round(share * 100)} %`;
}

function showSpread(name: MeasureName, { median, least, most }: Spread): string {
  if (!Number.isFinite(median)) return '–';
  if (least === most) return show(name, median);
  return `${show(name, median)} (${show(name, least)}–${show(name, most)})`;
}

/** A line for each measure in which the median of a peer is better than that of Sluice on Postgres. */
export function peersAhead({ summary }: Report): readonly string[] {
  const ours = summary['sluice-postgres'];
  if (ours === undefined) return [];
  return measureNames.flatMap((measure) => {
    const ahead = contenders.flatMap(({ name, title, side }) => {
      const theirs = summary[name]?.[measure].median ?? Number.NaN;
      const lead = leadOf(measure, ours[measure].median, theirs);
      return side === 'peer' && lead > 1 ? [`${title} ${lead.toFixed(2)} times`] : [];
    });
    return ahead.length === 0 ? [] : [`${measures[measure].title}: ${ahead.join('; ')}`];
  });
}

/** As a part of docs/benchmarks.md. */
export function toMarkdown(report: Report): string {
  const { measuredAt, machine, versions, sizes, rounds } = report;
  const named = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const ahead = peersAhead(report);
  return [
    `Measured ${measuredAt} on ${machine}. ${named.join(', ')}. ${rounds} rounds, ` +
      `${sizes.tasks.toLocaleString('en')} tasks each, ${sizes.submits.toLocaleString('en')} single ` +
      `submits, ${sizes.samples.toLocaleString('en')} samples of the time from submit to start. ` +
      'Medians, and in parentheses the least and the most of all rounds.',
    markdownTable(ratesGrid(report)),
    '![Rates and times of all contenders](benchmarks/rates.svg)',
    markdownTable(costsGrid(report)),
    'Ratios, round by round:',
    markdownTable(goalsGrid(report)),
    ahead.length === 0
      ? 'No peer is ahead of Sluice on Postgres in any of these.'
      : 'Where a peer is ahead of Sluice on Postgres, by medians:',
    ahead.map((line) => `- ${line}`).join('\n'),
    'Every round: [benchmarks/rounds.json](benchmarks/rounds.json).',
  ].join('\n\n');
}

function markdownTable([head = [], ...rows]: Grid): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

const begin = '<!-- measured -->';
const end = '<!-- /measured -->';

/** The document with what was measured last in place of what was before. */
export function withMeasured(document: string, measured: string): string {
  const from = document.indexOf(begin);
  const to = document.indexOf(end);
  if (from < 0 || to < from) throw new Error(`The document has no ${begin} … ${end}`);
  return [
    document.slice(0, from + begin.length),
    '\n\n',
    measured,
    '\n\n',
    document.slice(to),
  ].join('');
}
