import { MultiBar, type SingleBar } from 'cli-progress';
import { paint, printLine } from '../output.js';
import type { StateCounts, TaskCounts } from './task-counts.js';

export interface LiveView {
  stop(): void;
}

interface Line {
  readonly title: string;
  readonly queue: string | null;
  readonly total: number;
}

/** Bars where a person looks; elsewhere a line a second, which a log can keep. */
export function liveView(counts: TaskCounts, totals: ReadonlyMap<string, number>): LiveView {
  const total = [...totals.values()].reduce((sum, one) => sum + one, 0);
  return process.stdout.isTTY
    ? bars(counts, [
        { title: 'all', queue: null, total },
        ...[...totals].map(([queue, one]) => ({ title: queue, queue, total: one })),
      ])
    : plainLines(counts, total);
}

function bars(counts: TaskCounts, lines: readonly Line[]): LiveView {
  const width = Math.max(...lines.map(({ title }) => title.length));
  const multi = new MultiBar({
    format: `{title} ${paint('cyan', '{bar}')} {percentage} %  {states}`,
    barCompleteChar: '█',
    barIncompleteChar: '░',
    barsize: 30,
    hideCursor: true,
    clearOnComplete: false,
    forceRedraw: true,
  });
  const shown = lines.map((line): [Line, SingleBar] => [
    line,
    multi.create(line.total, 0, { title: line.title.padEnd(width), states: '' }),
  ]);
  const update = () => {
    for (const [{ queue }, bar] of shown) {
      const found = counts.of(queue);
      bar.update(ended(found), { states: describe(found) });
    }
  };
  const timer = setInterval(update, 100);
  return {
    stop: () => {
      clearInterval(timer);
      update();
      multi.stop();
    },
  };
}

function plainLines(counts: TaskCounts, total: number): LiveView {
  const update = () => {
    const found = counts.of(null);
    printLine(`${ended(found)}/${total}  ${describe(found)}`);
  };
  const timer = setInterval(update, 1_000);
  return { stop: () => clearInterval(timer) };
}

function ended({ completed, givenUp }: StateCounts): number {
  return completed + givenUp;
}

function describe({ waiting, executing, completed, givenUp }: StateCounts): string {
  const failures = givenUp === 0 ? '' : `, ${givenUp} given up`;
  return `${completed} completed, ${executing} executing, ${waiting} waiting${failures}`;
}
