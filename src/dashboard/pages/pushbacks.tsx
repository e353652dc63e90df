import { useState } from 'preact/hooks';
import type { PushbackPageWire, PushbackWire } from '../../protocol/pushbacks-schema.js';
import { Ago, Badge, Panel, TaskLink, type Tone } from '../components/bits.js';
import { Table, type Column } from '../components/table.js';
import { clock, count, duration } from '../format.js';
import { query } from '../http.js';
import { usePolled } from '../polled.js';

const few = 10;
const many = 200;

/** What the service of the queue said when it wanted no calls. Nothing while it never did. */
export function Pushbacks({ path }: { path: string }) {
  const [limit, setLimit] = useState(few);
  const { data } = usePolled<PushbackPageWire>(query(`${path}/pushbacks`, { limit }), {
    everyMs: 10_000,
  });
  if (data === null || data.items.length === 0) return null;
  const more =
    data.next_cursor === null || limit === many ? null : (
      <button type="button" onClick={() => setLimit(many)}>
        Show more
      </button>
    );
  return (
    <Panel title="What its service said" actions={more} isFlush>
      <Table columns={columns} rows={data.items} keyOf={({ at, task_id }) => `${at} ${task_id}`} />
    </Panel>
  );
}

const toneOf: Readonly<Record<PushbackWire['became'], Tone>> = {
  goes_on: 'idle',
  stopped: 'bad',
  was_stopped: 'warn',
};

function becameText({ became, until }: PushbackWire): string {
  const time = until === null ? '' : ` until ${clock(until)}`;
  switch (became) {
    case 'goes_on':
      return 'the task waits, the queue goes on';
    case 'stopped':
      return `the queue stopped${time}`;
    case 'was_stopped':
      return `it stood still already${time}`;
  }
}

const columns: readonly Column<PushbackWire>[] = [
  {
    title: 'When',
    cell: ({ at }) => (
      <span class="nowrap">
        <Ago at={at} />
      </span>
    ),
  },
  {
    title: 'What it said',
    cell: ({ code, message, answers }) => (
      <>
        <b>{code}</b>
        {answers > 1 ? <span class="dim"> {count(answers)} in that second</span> : null}
        <div>{message}</div>
      </>
    ),
  },
  {
    title: 'Retry after',
    cell: ({ retry_after_ms }) => (retry_after_ms === null ? '–' : duration(retry_after_ms / 1000)),
  },
  {
    title: 'What became',
    cell: (pushback) => <Badge tone={toneOf[pushback.became]}>{becameText(pushback)}</Badge>,
  },
  {
    title: 'Task',
    cell: ({ task_id, task_type }) => (
      <>
        <TaskLink id={task_id} />
        <div class="dim">{task_type}</div>
      </>
    ),
  },
];
