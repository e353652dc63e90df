import type { ListedTaskTypeWire, TaskTypePageWire } from '../../protocol/task-types-schema.js';
import { Panel } from '../components/bits.js';
import { Table, type Column } from '../components/table.js';
import { count, duration } from '../format.js';
import { usePolled } from '../polled.js';

/** The task types whose tasks go to this queue unless a submit says otherwise. */
export function TaskTypes({ queue }: { queue: string }) {
  const types = usePolled<TaskTypePageWire>('task-types?limit=1000', { everyMs: 60_000 });
  const items = (types.data?.items ?? []).filter((type) => (type.queue ?? 'default') === queue);
  if (items.length === 0) return null;
  return (
    <Panel title="Task types that go here" isFlush>
      <Table columns={columns} rows={items} keyOf={({ task_type }) => task_type} />
    </Panel>
  );
}

const columns: readonly Column<ListedTaskTypeWire>[] = [
  { title: 'Type', cell: ({ task_type }) => task_type },
  { title: 'Priority', cell: ({ priority }) => priority ?? 'as submitted' },
  {
    title: 'Timeout',
    cell: ({ timeout_seconds }) =>
      timeout_seconds === null ? 'by priority' : duration(timeout_seconds),
  },
  {
    title: 'Retries',
    cell: ({ max_retries }) => (max_retries === null ? 'by priority' : count(max_retries)),
  },
  {
    title: 'Cost',
    cell: ({ cost }) =>
      Object.entries(cost ?? {})
        .map(([unit, value]) => `${count(value)} ${unit}`)
        .join(', ') || '–',
  },
  {
    title: 'Needs',
    cell: ({ required_capabilities }) => required_capabilities.join(', ') || '–',
  },
];
