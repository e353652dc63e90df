import type { TaskState } from '../domain/task-state.js';
import { paint } from './output.js';

/** 830 ms, 4.2 s, 3 min, 5 h, 2 d. */
export function readableSeconds(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

export function readableAge(then: Date, now: Date): string {
  return `${readableSeconds(Math.max(0, now.getTime() - then.getTime()) / 1000)} ago`;
}

const styles: Readonly<Record<TaskState, Parameters<typeof paint>[0]>> = {
  pending: 'dim',
  queued: 'yellow',
  assigned: 'cyan',
  executing: 'cyan',
  completed: 'green',
  dead_letter: 'red',
  failed: 'red',
  cancelled: 'dim',
};

export function readableState(state: TaskState): string {
  return paint(styles[state], state);
}

/** For a cell of a table: what a service answered may have lines and control characters of its own. */
export function oneLine(text: string): string {
  return text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim();
}

const barHeights = '▁▂▃▄▅▆▇█';

/** One character for each value, as high as its share of the greatest; a dot for none. */
export function bars(values: readonly number[]): string {
  const greatest = Math.max(...values);
  return values
    .map((value) =>
      value === 0 ? '·' : barHeights.charAt(Math.ceil((value / greatest) * barHeights.length) - 1),
    )
    .join('');
}
