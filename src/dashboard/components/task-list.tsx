import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ListedTaskWire, TaskPageWire } from '../../protocol/tasks-schema.js';
import { clock, count, duration } from '../format.js';
import { get, query } from '../http.js';
import { usePolled } from '../polled.js';
import { stepOn } from '../steps.js';
import type { TaskSearch } from '../task-search.js';
import {
  Ago,
  Empty,
  Failure,
  Loading,
  Panel,
  PriorityMark,
  QueueLink,
  StateBadge,
  TaskLink,
} from './bits.js';
import { Table, type Column } from './table.js';

const pageSize = 50;

/** Newest first, a page at a time. The first page is kept up to date; once there are more, the list stands still. */
export function TaskList({
  filter,
  actions,
  title = 'Newest first',
}: {
  filter: TaskSearch;
  actions?: ComponentChildren;
  title?: string;
}) {
  const list = useTaskPages(query('tasks', { ...filter, limit: pageSize }));
  if (list.last === null) {
    return list.error === null ? <Loading /> : <Failure error={list.error} />;
  }
  const { items, last } = list;
  return (
    <Panel title={title} actions={actions} isFlush>
      <Failure error={list.error} />
      {items.length > 0 ? (
        <Table columns={columns} rows={items} keyOf={({ task_id }) => task_id} />
      ) : (
        <NoMatch last={last} queue={filter.queue} />
      )}
      <Further list={list} last={last} />
    </Panel>
  );
}

interface TaskPages {
  readonly items: readonly ListedTaskWire[];
  /** The last page that was read; null: none yet. */
  readonly last: TaskPageWire | null;
  readonly error: unknown;
  readonly isSearching: boolean;
  readonly standsStill: boolean;
  /** Until it finds something, comes to the end or is stopped. */
  readonly search: () => void;
  readonly stop: () => void;
  /** The newest page again, kept up to date. */
  readonly restart: () => void;
}

function useTaskPages(path: string): TaskPages {
  const [more, setMore] = useState<{ path: string; pages: TaskPageWire[] }>({ path, pages: [] });
  const [searching, setSearching] = useState<string | null>(null);
  const [fault, setFault] = useState<{ path: string; error: unknown } | null>(null);
  const stopping = useRef(new AbortController());
  const standing = more.path === path ? more.pages : [];
  const standsStill = standing.length > 0;
  const first = usePolled<TaskPageWire>(standsStill ? null : path, { everyMs: 3_000 });
  const pages = standsStill ? standing : first.data === null ? [] : [first.data];
  const last = pages.at(-1) ?? null;
  useEffect(() => () => stopping.current.abort(), [path]);

  const search = async () => {
    const stop = new AbortController();
    stopping.current = stop;
    setSearching(path);
    setFault(null);
    let found = pages;
    try {
      await stepOn(
        last?.next_cursor ?? null,
        (cursor) => get<TaskPageWire>(`${path}&cursor=${encodeURIComponent(cursor ?? '')}`),
        {
          signal: stop.signal,
          onAnswer: (page) => {
            found = [...found, page];
            setMore({ path, pages: found });
            return page.items.length === 0;
          },
        },
      );
    } catch (error) {
      if (!stop.signal.aborted) setFault({ path, error });
    }
    setSearching(null);
  };

  return {
    items: distinct(pages.flatMap((page) => page.items)),
    last,
    error: fault?.path === path ? fault.error : first.error,
    isSearching: searching === path,
    standsStill,
    search: () => void search(),
    stop: () => stopping.current.abort(),
    restart: () => {
      stopping.current.abort();
      setMore({ path, pages: [] });
    },
  };
}

function distinct(tasks: readonly ListedTaskWire[]): ListedTaskWire[] {
  return [...new Map(tasks.map((task) => [task.task_id, task])).values()];
}

/** "No task" is said only when all were looked at. */
function NoMatch({ last, queue }: { last: TaskPageWire; queue: string | undefined }) {
  if (last.searched_back_to !== null) {
    return (
      <Empty title={`No match among the tasks submitted since ${clock(last.searched_back_to)}.`} />
    );
  }
  return (
    <Empty
      title="No task matches."
      command={`sluice submit hello --queue ${queue ?? 'demo'} --params '{"name":"you"}'`}
    />
  );
}

/** How far the list goes, and how to go on. */
function Further({ list, last }: { list: TaskPages; last: TaskPageWire }) {
  const { isSearching, standsStill, search, stop, restart } = list;
  const backTo = last.searched_back_to;
  if (backTo === null && !standsStill) return null;
  const isFull = last.items.length >= pageSize;
  return (
    <div class="pager">
      {isSearching ? (
        <>
          <progress aria-label="Searching" />
          <button type="button" onClick={stop}>
            Stop
          </button>
        </>
      ) : backTo === null ? null : (
        <button type="button" onClick={search}>
          {isFull ? `Show ${pageSize} more` : 'Search further'}
        </button>
      )}
      <span class="dim" role="status">
        {backTo === null ? 'These are all.' : `Looked back to ${clock(backTo)}.`}
      </span>
      {standsStill && !isSearching ? (
        <button type="button" class="plain" onClick={restart}>
          Back to the newest
        </button>
      ) : null}
    </div>
  );
}

const columns: readonly Column<ListedTaskWire>[] = [
  { title: 'Task', cell: ({ task_id }) => <TaskLink id={task_id} /> },
  { title: 'Type', cell: ({ task_type }) => task_type },
  { title: 'Queue', cell: ({ queue }) => <QueueLink name={queue} /> },
  { title: 'Priority', cell: ({ priority }) => <PriorityMark priority={priority} /> },
  { title: 'Status', cell: ({ status }) => <StateBadge state={status} /> },
  { title: 'Submitted', cell: ({ created_at }) => <Ago at={created_at} /> },
  {
    title: 'Ran',
    isNumber: true,
    cell: ({ execution_duration_seconds }) => duration(execution_duration_seconds),
  },
  { title: 'Attempt', isNumber: true, cell: ({ attempt: number }) => count(number) },
];
