import type { ListedTaskWire } from '../../protocol/tasks-schema.js';
import type {
  DeadLetterAnalysisWire,
  DeadLetterPageWire,
  ReplayedWire,
} from '../../protocol/dead-letters-schema.js';
import {
  Ago,
  Badge,
  Empty,
  Failure,
  Loading,
  Pager,
  Panel,
  QueueLink,
  TaskLink,
} from '../components/bits.js';
import { useBulk, type Bulk } from '../components/bulk-dialog.js';
import { Sparkline } from '../components/sparkline.js';
import { Table, type Column } from '../components/table.js';
import { config } from '../config.js';
import { ago, count, plural } from '../format.js';
import { get, query, send } from '../http.js';
import { usePages } from '../paged.js';
import { usePolled } from '../polled.js';
import { route, setSearch } from '../router.js';
import { useStore } from '../store.js';

type Pattern = DeadLetterAnalysisWire['patterns'][number];

interface Filter {
  readonly pattern?: string;
  readonly queue?: string;
  readonly task_type?: string;
  readonly code?: string;
}

export function DeadLettersPage() {
  const [dialog, ask] = useBulk();
  return (
    <>
      <DeadLetters ask={ask} />
      {dialog}
    </>
  );
}

function DeadLetters({ ask }: { ask: (bulk: Bulk) => void }) {
  const filter = filterFrom(useStore(route).search);
  const analysis = usePolled<DeadLetterAnalysisWire>('dlq/analysis', { everyMs: 3_000 });
  const list = usePages<ListedTaskWire, DeadLetterPageWire>(
    query('dlq', { ...filter, limit: 50 }),
    idOf,
    { everyMs: 3_000 },
  );
  const reload = () => {
    analysis.reload();
    list.reload();
  };
  const replay = (one: Filter) => ask({ ...replayOf(one), onDone: reload });
  if (analysis.data === null) {
    return analysis.error === null ? <Loading /> : <Failure error={analysis.error} />;
  }
  const { patterns } = analysis.data;
  if (patterns.length === 0) {
    return (
      <>
        <h1>Dead letters</h1>
        <Empty title="There are no dead letters.">
          <p>A task whose retries are spent, or whose error is not worth a retry, ends up here.</p>
        </Empty>
      </>
    );
  }
  return (
    <>
      <h1>Dead letters</h1>
      <Panel title="Patterns" isFlush>
        <Table
          columns={config.may.operate ? [...patternColumns, replayColumn(replay)] : patternColumns}
          rows={patterns}
          keyOf={({ id }) => id}
        />
      </Panel>
      <Failure error={list.error} />
      {list.first === null ? null : (
        <Panel
          title={`${totalText(list.first.total_count)}${aboutText(filter)}`}
          actions={
            <span class="actions">
              {Object.keys(filter).length === 0 ? null : (
                <button
                  type="button"
                  class="plain"
                  onClick={() => setSearch({ pattern: '', queue: '', task_type: '', code: '' })}
                >
                  Show all
                </button>
              )}
              {config.may.operate && list.first.total_count > 0 ? (
                <button type="button" onClick={() => replay(filter)}>
                  Replay {count(list.first.total_count)} …
                </button>
              ) : null}
            </span>
          }
          isFlush
        >
          <Table columns={letterColumns} rows={list.items} keyOf={idOf} />
          <Pager showMore={list.showMore} />
        </Panel>
      )}
    </>
  );
}

function idOf({ task_id }: ListedTaskWire): string {
  return task_id;
}

function filterFrom(search: URLSearchParams): Filter {
  const given = ['pattern', 'queue', 'task_type', 'code'].flatMap((name) => {
    const value = search.get(name) ?? '';
    return value === '' ? [] : [[name, value]];
  });
  return Object.fromEntries(given) as Filter;
}

function totalText(total: number): string {
  return `${plural(total, 'dead letter')}${total >= 10_000 ? ' or more' : ''}`;
}

function aboutText({ pattern, ...filter }: Filter): string {
  const values = [...(pattern === undefined ? [] : ['this pattern']), ...Object.values(filter)];
  return values.length === 0 ? '' : ` of ${values.join(', ')}`;
}

function replayOf(filter: Filter): Omit<Bulk, 'onDone'> {
  return {
    title: 'Replay dead letters',
    text: `All dead letters${aboutText(filter)} run again with all their retries, 100 a second.`,
    result: 'replayed',
    button: 'Replay',
    ...(Object.keys(filter).length === 0 ? { typed: 'replay all' } : {}),
    count: async () => {
      const path = query('dlq', { ...filter, limit: 1 });
      const { total_count } = await get<DeadLetterPageWire>(path);
      return { count: total_count, searched_back_to: null, next_cursor: null };
    },
    // One call brings back 10,000 at most.
    act: async (cursor) => {
      const body = { ...filter, ...(cursor === null ? {} : { cursor }) };
      const answer = await send<ReplayedWire>('POST', 'dlq/replay', body);
      return { done: answer.replayed, next_cursor: answer.next_cursor };
    },
  };
}

const patternColumns: readonly Column<Pattern>[] = [
  {
    title: 'Tasks',
    isNumber: true,
    cell: ({ id, task_type, code, count: tasks }) => (
      <button
        type="button"
        class="link"
        onClick={() => setSearch({ pattern: id })}
        aria-label={`Show the ${count(tasks)} tasks of ${task_type} with ${code}`}
      >
        {count(tasks)}
      </button>
    ),
  },
  {
    title: 'Error',
    cell: ({ code, message, example, retriable_share }) => (
      <>
        <span class="mono">{code}</span> {(message ?? 'various messages').slice(0, 160)}{' '}
        <TaskLink id={example.task_id} /> <RetriableBadge share={retriable_share} />
      </>
    ),
  },
  { title: 'Type', cell: ({ task_type }) => task_type },
  {
    title: 'Queues',
    cell: ({ queues, queue_count }) => (
      <>
        {queues.slice(0, 2).map(({ queue }) => (
          <div key={queue}>
            <QueueLink name={queue} />
          </div>
        ))}
        {queue_count > 2 ? <div class="dim">and {count(queue_count - 2)} more</div> : null}
      </>
    ),
  },
  {
    title: '24 hours',
    cell: ({ hourly }) => (
      <Sparkline values={hourly} label={`${count(sum(hourly))} in the last 24 hours`} />
    ),
  },
  {
    title: 'Last seen',
    cell: ({ first_seen, last_seen }) => (
      <span class="nowrap" title={`first seen ${ago(first_seen)}`}>
        <Ago at={last_seen} />
      </span>
    ),
  },
];

function RetriableBadge({ share }: { share: number }) {
  if (share === 1) return null;
  const percent = Math.round(share * 100);
  return <Badge tone="bad">{percent === 0 ? 'not retriable' : `${percent} % retriable`}</Badge>;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function replayColumn(onReplay: (filter: Filter) => void): Column<Pattern> {
  return {
    title: 'Action',
    cell: ({ id }) => (
      <button type="button" onClick={() => onReplay({ pattern: id })}>
        Replay …
      </button>
    ),
  };
}

const letterColumns: readonly Column<ListedTaskWire>[] = [
  { title: 'Task', cell: ({ task_id }) => <TaskLink id={task_id} /> },
  { title: 'Type', cell: ({ task_type }) => task_type },
  { title: 'Queue', cell: ({ queue }) => <QueueLink name={queue} /> },
  {
    title: 'Error',
    cell: ({ error }) => (
      <>
        <span class="mono">{error?.code}</span> {error?.message.slice(0, 120)}
      </>
    ),
  },
  { title: 'Attempts', isNumber: true, cell: ({ attempt: number }) => count(number) },
  { title: 'Ended', cell: ({ completed_at }) => <Ago at={completed_at} /> },
];
