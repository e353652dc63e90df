import { stripVTControlCharacters } from 'node:util';
import type { AlertView } from '../../protocol/alerts-api.js';
import type { QueueView } from '../../protocol/queues-api.js';
import type { Series } from '../../protocol/series-api.js';
import type { Attention, Statistics } from '../../protocol/statistics-api.js';
import { paint, tableLines } from '../output.js';
import { pauseText, runningText, usageText } from '../queue-text.js';
import { readableSeconds } from '../readable.js';
import { findAttention } from './attention.js';
import { sortQueues, waitingOf, type QueueOrder } from './queue-order.js';
import { sparkline } from './sparkline.js';

/** What a server answered last. */
export interface Shown {
  readonly statistics: Statistics;
  readonly attention: Attention;
  readonly queues: readonly QueueView[];
  /** There are more queues than these. */
  readonly hasMoreQueues: boolean;
  /** Those that fire. */
  readonly alerts: readonly AlertView[];
  /** The last hour by minute, of all queues. */
  readonly series: Series;
}

export interface View {
  readonly server: string;
  readonly now: Date;
  readonly width: number;
  readonly height: number;
  readonly order: QueueOrder;
  /** Queues that are scrolled out above. */
  readonly offset: number;
  /** Why the numbers are old; null: they are not. */
  readonly trouble: string | null;
}

/** The whole screen: never more lines than it has, none wider. */
export function drawScreen(shown: Shown | null, view: View): string[] {
  const head = [titleLine(view), ...(view.trouble === null ? [] : [paint('red', view.trouble)])];
  const body = shown === null ? [] : drawNumbers(shown, view, view.height - head.length - 1);
  const lines = [...head, ...body].slice(0, view.height - 1);
  const blank = Array.from({ length: Math.max(0, view.height - 1 - lines.length) }, () => '');
  return [...lines, ...blank, keyLine(view)].map((line) => fit(line, view.width));
}

function drawNumbers(shown: Shown, view: View, height: number): string[] {
  const attention = findAttention(shown);
  const top = [
    ...summaryLines(shown, view),
    '',
    ...(attention.length === 0
      ? [paint('green', 'All is well.')]
      : attention.map((text) => paint('yellow', text))),
    '',
  ];
  return [...top, ...queueLines(shown, view, height - top.length)];
}

const count = (value: number): string => value.toLocaleString('en');
const seconds = (value: number | null): string => (value === null ? '–' : readableSeconds(value));

function titleLine({ server, now }: View): string {
  return `${paint('bold', 'sluice top')}  ${server}  ${now.toTimeString().slice(0, 8)}`;
}

function keyLine({ order }: View): string {
  return paint('dim', `q quit   s sort (by ${order})   ↑ ↓ PgUp PgDn scroll`);
}

function summaryLines({ statistics, series }: Shown, { width }: View): string[] {
  const { queues, workers, throughput, age } = statistics;
  const { high, medium, low } = queues;
  const name = (text: string) => paint('dim', text.padEnd(10));
  const last = (metric: string) => seconds(lastKnown(series.values[metric]));
  const bars = (metric: string) => sparkline(series.values[metric] ?? [], Math.min(60, width - 50));
  return [
    '',
    `${name('waiting')}${count(high.depth + medium.depth + low.depth)}` +
      `  (high ${count(high.depth)}, medium ${count(medium.depth)}, low ${count(low.depth)})` +
      `  oldest ${seconds(age.oldestSeconds)}`,
    `${name('running')}${count(statistics.running)} of ${count(workers.totalCapacity)} places` +
      `  workers ${count(workers.active)} active` +
      (workers.draining > 0 ? `, ${count(workers.draining)} draining` : ''),
    `${name('wait')}p50 ${last('wait_p50')}  p95 ${last('wait_p95')}` +
      `   run p50 ${last('run_p50')}  p95 ${last('run_p95')}`,
    `${name('done')}${`${count(throughput.completedLastMinute)} in a minute`.padEnd(22)}${bars('completed')}`,
    `${name('failed')}${`${count(throughput.failedLastMinute)} in a minute`.padEnd(22)}${bars('failed')}`,
  ];
}

function lastKnown(values: readonly (number | null)[] = []): number | null {
  return values.findLast((value) => value !== null) ?? null;
}

function queueLines(
  { queues, hasMoreQueues }: Shown,
  { order, offset, width }: View,
  height: number,
): string[] {
  if (queues.length === 0) {
    return ['No queues yet: the first task of a queue makes it. Try: sluice submit hello'];
  }
  // The head of the table takes one line, what is left out another.
  const room = Math.max(1, height - 2);
  const from = Math.max(0, Math.min(offset, queues.length - room));
  const rows = sortQueues(queues, order).slice(from, from + room);
  const left = queues.length - rows.length;
  const more = hasMoreQueues ? 'at least ' : '';
  return [
    ...tableLines(columns, rows.map(cellsOf), width),
    ...(left > 0 ? [paint('dim', `${more}${count(left)} more queues`)] : []),
  ];
}

const columns = [
  { title: 'queue', least: 10 },
  { title: 'waiting', align: 'right' },
  { title: 'high', align: 'right', spare: 1 },
  { title: 'running', align: 'right' },
  { title: 'done/min', align: 'right', spare: 5 },
  { title: 'failed/min', align: 'right', spare: 3 },
  { title: 'oldest', align: 'right', spare: 4 },
  { title: 'used', least: 16, spare: 2 },
  { title: 'state', least: 20 },
] as const;

function cellsOf(queue: QueueView): string[] {
  const { live } = queue;
  return [
    queue.name,
    count(waitingOf(queue)),
    count(live.depth.high),
    runningText(queue),
    count(live.lastMinute.completed),
    count(live.lastMinute.failed),
    live.oldestAgeSeconds === null ? '' : readableSeconds(live.oldestAgeSeconds),
    usageText(live.usage),
    paint('yellow', pauseText(queue)),
  ];
}

/** Colours are given up where a line has to be cut. */
function fit(line: string, width: number): string {
  const plain = stripVTControlCharacters(line);
  return plain.length <= width ? line : `${plain.slice(0, Math.max(0, width - 1))}…`;
}
