import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import prettier from 'prettier';
import { withMeasured } from '../../bench/run/report.js';
import type { Chart } from '../../bench/draw.js';
import { drawBacklog } from './charts/backlog.js';
import { drawThroughput, type Panel } from './charts/throughput.js';
import { drawWaterfall } from './charts/waterfall.js';
import { withoutRuns } from './kept-reports.js';
import { published, toMarkdown, type ScenarioReport } from './report.js';
import { outageShades } from './scenarios/outage.js';
import { spiralShades } from './scenarios/spiral.js';
import type { Ran } from './work.js';

const root = join(import.meta.dirname, '../..');
const documentPath = join(root, 'docs/lab.md');
const chartsPath = join(root, 'docs/lab');

/** Tables and charts of what was measured last of every scenario. */
export async function writeDocuments(reports: readonly ScenarioReport[]): Promise<void> {
  mkdirSync(chartsPath, { recursive: true });
  for (const [name, { svg, png }] of Object.entries(drawAll(reports))) {
    writeFileSync(join(chartsPath, `${name}.svg`), svg);
    writeFileSync(join(chartsPath, `${name}.png`), png);
  }
  await writeJson(join(chartsPath, 'numbers.json'), withoutRuns(reports));
  const document = withMeasured(readFileSync(documentPath, 'utf8'), toMarkdown(reports));
  writeFileSync(documentPath, await format(document, 'markdown'));
}

export async function writeJson(path: string, value: unknown): Promise<void> {
  writeFileSync(path, await format(JSON.stringify(value), 'json'));
}

/** By the name of the file; those whose runs are there. */
export function drawAll(reports: readonly ScenarioReport[]): Readonly<Record<string, Chart>> {
  const ransOf = (name: string, title = name): readonly Ran[] | null =>
    reports.find((report) => report.name === name)?.runs[title] ?? null;
  const batch = ransOf('batch');
  const sluice = ransOf('sluice');
  const limited = ransOf('limited');
  return {
    ...(batch === null || sluice === null
      ? {}
      : {
          throughput: drawThroughput(panels(batch, sluice, limited), aboutOf(reports, 'sluice')),
          waterfall: drawWaterfall(batch, sluice, aboutOf(reports, 'sluice')),
        }),
    ...backlogChart(
      reports,
      'spiral',
      'A burst that a batch system does not get over',
      spiralShades,
    ),
    ...backlogChart(reports, 'outage', 'A minute without the models', outageShades),
  };
}

function panels(
  batch: readonly Ran[],
  sluice: readonly Ran[],
  limited: readonly Ran[] | null,
): readonly Panel[] {
  return [
    {
      title: 'Batch: 20 parts, sub-batches of 10',
      colour: 'batch',
      rans: batch,
      publishedSeconds: published.batch.durationSeconds,
    },
    {
      title: 'Sluice: 8 workers × 50 slots',
      colour: 'sluice',
      rans: sluice,
      publishedSeconds: published.sluice.durationSeconds,
    },
    ...(limited === null
      ? []
      : [
          {
            title: 'Sluice with limits: 20 a minute for each of 10 models',
            colour: 'limited',
            rans: limited,
            allowedPerSecond: 200 / 60,
          } as const,
        ]),
  ];
}

function backlogChart(
  reports: readonly ScenarioReport[],
  name: string,
  title: string,
  shadesOf: typeof spiralShades,
): Readonly<Record<string, Chart>> {
  const runs = reports.find((report) => report.name === name)?.runs ?? {};
  const batch = runs[`${name}: batch`];
  const sluice = runs[`${name}: sluice`];
  if (batch === undefined || sluice === undefined) return {};
  const lastMs = Math.max(...batch.map(({ arrivedMs }) => arrivedMs));
  const about = aboutOf(reports, name);
  return { [name]: drawBacklog({ title, about, batch, sluice, shades: shadesOf(lastMs) }) };
}

function aboutOf(reports: readonly ScenarioReport[], name: string): string {
  const report = reports.find((each) => each.name === name);
  const scale = report?.timeScale ?? 1;
  const pace = scale === 1 || name === 'outage' ? 'in real time' : `run ${scale} times faster`;
  return `seed ${report?.seeds[0]?.seed ?? 1}, ${pace}`;
}

async function format(text: string, parser: 'json' | 'markdown'): Promise<string> {
  const config = await prettier.resolveConfig(documentPath);
  return prettier.format(text, { ...config, parser });
}
