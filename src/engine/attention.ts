import { priorities } from '../domain/priority.js';
import type { Attention } from '../protocol/statistics-api.js';
import type { Queryable } from '../store/database.js';
import { findConfigured, type ConfiguredRow } from '../store/queues.js';
import { findUnsettledNames } from '../store/unsettled.js';
import { findSuspendedWorkers } from '../store/workers.js';
import { approximateNow, instant, type EngineContext } from './context.js';
import type { Line, LineSnapshot, QueueLine } from './line.js';
import type { QueueControl } from './queue-control.js';
import type { QueueDirectory } from './queue-directory.js';
import { isPausedAt } from './queue-pause.js';

export interface AttentionSources {
  readonly line: Pick<Line, 'snapshot'>;
  readonly queues: Pick<QueueDirectory, 'rows'>;
  readonly queueControl: Pick<QueueControl, 'viewsOf'>;
  readonly isServing: () => boolean;
}

/** Shown; of the others only how many there are. */
const maxShown = 20;
/** Names of queues whose settings are not in force. With more of them Redis is away, and all else is known. */
const maxUnsettled = 10_000;
/** As long as a task of low priority waits before its age makes it medium, unless its queue says otherwise. */
const longWaitMs = 600_000;

/** How bad it is: the lowest first. */
const ranks = { stopped: 0, waitsLong: 1, pausedWithWork: 1, recovering: 2, paused: 3 };

interface Troubled {
  readonly name: string;
  readonly rank: number;
  readonly waiting: number;
  readonly oldestMs: number;
}

/**
 * The queues and workers that a person should look at, the worst first: out of what this process knows anyway, however
 * many queues there are.
 */
export async function findAttention(
  context: EngineContext,
  { line, queues, queueControl, isServing }: AttentionSources,
): Promise<Attention> {
  const { reads } = context.db;
  const snapshot = await line.snapshot();
  const unsettled = await findUnsettledNames(reads, maxUnsettled);
  const configured = isServing() ? queues.rows() : await settingsOf(reads);
  const nowMs = approximateNow(context).getTime();
  const troubled = findTroubled(snapshot, configured, unsettled, nowMs);
  const names = troubled.slice(0, maxShown).map(({ name }) => name);
  const views = await queueControl.viewsOf(names);
  const suspended = await findSuspendedWorkers(reads, maxShown, instant(context));
  return {
    queues: {
      items: names.flatMap((name) => views.filter((view) => view.name === name)),
      totalCount: troubled.length,
    },
    workers: suspended,
  };
}

/** A process that does not serve keeps no settings. */
async function settingsOf(db: Queryable): Promise<Iterable<ConfiguredRow>> {
  return findConfigured(db, null);
}

function findTroubled(
  { queues: lines }: LineSnapshot,
  configured: Iterable<ConfiguredRow>,
  unsettled: readonly string[],
  nowMs: number,
): Troubled[] {
  const found = new Map<string, Troubled>();
  const note = (name: string, rank: number) => {
    if ((found.get(name)?.rank ?? Infinity) > rank) found.set(name, seen(name, rank, lines));
  };
  for (const name of unsettled) note(name, ranks.stopped);
  for (const row of configured) {
    const rank = rankOf(row, lines.get(row.name), nowMs);
    if (rank !== null) note(row.name, rank);
  }
  for (const [name, queue] of lines) {
    if (oldestMsOf(queue) >= longWaitMs) note(name, ranks.waitsLong);
  }
  return [...found.values()].sort(worstFirst);
}

function rankOf(
  { settings, circuit }: ConfiguredRow,
  line: QueueLine | undefined,
  nowMs: number,
): number | null {
  if (circuit.kind === 'open') return ranks.stopped;
  if (isPausedAt(settings, nowMs)) {
    return waitingIn(line) > 0 ? ranks.pausedWithWork : ranks.paused;
  }
  return circuit.kind === 'recovering' ? ranks.recovering : null;
}

function seen(name: string, rank: number, lines: LineSnapshot['queues']): Troubled {
  const line = lines.get(name);
  return {
    name,
    rank,
    waiting: waitingIn(line),
    oldestMs: line === undefined ? 0 : oldestMsOf(line),
  };
}

function worstFirst(a: Troubled, b: Troubled): number {
  return (
    a.rank - b.rank ||
    b.oldestMs - a.oldestMs ||
    b.waiting - a.waiting ||
    (a.name < b.name ? -1 : 1)
  );
}

function waitingIn(line: QueueLine | undefined): number {
  if (line === undefined) return 0;
  return priorities.reduce((sum, one) => sum + line.waiting[one].count, 0);
}

function oldestMsOf({ waiting }: QueueLine): number {
  return Math.max(...priorities.map((one) => waiting[one].oldestAgeMs ?? 0));
}
