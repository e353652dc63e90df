import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ScenarioReport } from './report.js';

const folder = join(import.meta.dirname, '../results');

/** What was measured last of every scenario; each time scale has a file of its own. */
export class KeptReports {
  readonly path: string;
  readonly #names: readonly string[];

  constructor(timeScale: number, names: readonly string[], inFolder = folder) {
    const name = timeScale === 1 ? 'case-study.json' : `case-study-${timeScale}.json`;
    this.path = join(inFolder, name);
    this.#names = names;
  }

  all(): readonly ScenarioReport[] {
    if (!existsSync(this.path)) return [];
    return (JSON.parse(readFileSync(this.path, 'utf8')) as { scenarios: ScenarioReport[] })
      .scenarios;
  }

  keep(report: ScenarioReport): void {
    const place = ({ name }: ScenarioReport) => this.#names.indexOf(name);
    const others = this.all().filter(({ name }) => name !== report.name);
    const scenarios = [...others, report].sort((a, b) => place(a) - place(b));
    mkdirSync(dirname(this.path), { recursive: true });
    writeFileSync(this.path, `${JSON.stringify({ scenarios })}\n`);
  }
}

/** For whoever reads on: without when every task began and ended. */
export function withoutRuns(reports: readonly ScenarioReport[]) {
  return { scenarios: reports.map(({ runs: _, ...report }) => report) };
}
