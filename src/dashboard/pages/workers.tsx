import type { ComponentChildren } from 'preact';
import type { ScalingWire } from '../../protocol/scaling-schema.js';
import type { WorkerDetailWire, WorkerWire } from '../../protocol/workers-schema.js';
import {
  Ago,
  Badge,
  Empty,
  Failure,
  Loading,
  Meter,
  Pager,
  Panel,
  TaskLink,
  Tile,
} from '../components/bits.js';
import { useConfirm } from '../components/dialog.js';
import { JsonView } from '../components/json-view.js';
import { Table, type Column } from '../components/table.js';
import { config } from '../config.js';
import { parseExact } from '../exact-json.js';
import { ago, amount, count, percent, plural } from '../format.js';
import { href } from '../href.js';
import { send } from '../http.js';
import { attempt } from '../notices.js';
import { usePages } from '../paged.js';
import { usePolled } from '../polled.js';

export function WorkersPage() {
  const workers = usePages<WorkerWire>('workers?limit=250', idOf, { everyMs: 3_000 });
  const scaling = usePolled<ScalingWire>('scaling', { everyMs: 5_000 });
  const [confirm, drain] = useDrain(workers.reload);
  if (workers.first === null) {
    return workers.error === null ? <Loading /> : <Failure error={workers.error} />;
  }
  const { items, showMore } = workers;
  return (
    <>
      <h1>Workers</h1>
      <Failure error={workers.error} />
      {scaling.data === null ? null : <Demand scaling={scaling.data} />}
      {items.length === 0 ? (
        <Empty title="There is no worker." command="sluice worker --module ./tasks.js">
          <p>Start one that knows your handlers:</p>
        </Empty>
      ) : (
        <Panel
          title={`${plural(items.length, 'worker')}${showMore === null ? '' : ' and more'}`}
          isFlush
        >
          <Table
            columns={config.may.operate ? [...columns, drainColumn(drain)] : columns}
            rows={items}
            keyOf={idOf}
          />
          <Pager showMore={showMore} />
        </Panel>
      )}
      {confirm}
    </>
  );
}

function idOf({ worker_id }: WorkerWire): string {
  return worker_id;
}

/** The dialog that asks first, and what opens it. */
function useDrain(onDone: () => void) {
  const [confirm, ask] = useConfirm();
  const drain = (worker: WorkerWire) =>
    ask({
      title: `Drain ${nameOf(worker)}?`,
      text: <p>It finishes what it runs, takes nothing more, and leaves.</p>,
      button: 'Drain it',
      action: async () => {
        await attempt(`${nameOf(worker)} drains.`, () =>
          send('POST', `workers/${worker.worker_id}/drain`),
        );
        onDone();
      },
    });
  return [confirm, drain] as const;
}

/** All that is known of one worker. */
export function WorkerPage({ id }: { id: string }) {
  const {
    data: worker,
    error,
    reload,
  } = usePolled<WorkerDetailWire>(`workers/${encodeURIComponent(id)}`, { everyMs: 3_000 });
  const [confirm, drain] = useDrain(reload);
  if (worker === null) return error === null ? <Loading /> : <Failure error={error} />;
  const { current_tasks: tasks, health } = worker;
  return (
    <>
      <p class="crumbs">
        <a href={href('workers')}>Workers</a> / {worker.worker_id}
      </p>
      <div class="between">
        <h1>
          {nameOf(worker)} <WorkerState worker={worker} />
        </h1>
        {config.may.operate && worker.status === 'active' ? (
          <div class="actions">
            <button type="button" onClick={() => drain(worker)}>
              Drain …
            </button>
          </div>
        ) : null}
      </div>
      <Failure error={error} />
      <Panel title="About it">
        <dl class="facts">
          {factsOf(worker).map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      </Panel>
      <Panel title="What it holds">
        {tasks.length === 0 ? (
          <p class="dim">No task.</p>
        ) : (
          <ul class="ids">
            {tasks.map((task) => (
              <li key={task}>
                <TaskLink id={task} />
              </li>
            ))}
          </ul>
        )}
        {tasks.length < worker.current_load ? (
          <p class="dim">
            The first {count(tasks.length)} of {count(worker.current_load)}.
          </p>
        ) : null}
      </Panel>
      {health === null ? null : (
        <Panel title="What else it tells">
          <JsonView tree={parseExact(JSON.stringify(health))} label="Health" />
        </Panel>
      )}
      {confirm}
    </>
  );
}

function factsOf(worker: WorkerDetailWire): [name: string, value: ComponentChildren][] {
  const { event_loop_delay_ms: delay, cpu_usage: cpu, memory_usage: memory } = worker;
  const unknown = 'not told';
  return [
    ['Load', `${count(worker.current_load)} of ${count(worker.capacity)}`],
    ['Takes', takes(worker)],
    ['Has', worker.capabilities.length === 0 ? 'no capabilities' : worker.capabilities.join(', ')],
    ['Host', worker.host ?? unknown],
    ['Version', worker.version ?? unknown],
    ['CPU', cpu === null ? unknown : `${amount(cpu)} cores`],
    ['Memory', memory === null ? unknown : percent(memory)],
    ['Loop delay', delay === null ? unknown : `${Math.round(delay)} ms`],
    ['Failures in a row', count(worker.consecutive_failures)],
    ['Suspended', suspensionText(worker)],
    [
      'Asked to leave',
      worker.drain_requested_at === null ? 'no' : <Ago at={worker.drain_requested_at} />,
    ],
    ['Last heard', <Ago key="heard" at={worker.last_heartbeat_at} />],
    ['Since', <Ago key="since" at={worker.registered_at} />],
  ];
}

function suspensionText({ benched_until: until }: WorkerWire): string {
  if (until === null) return 'no';
  return Date.parse(until) > Date.now()
    ? `it fails where others succeed; it gets tasks again ${ago(until)}`
    : 'it was; it gets 3 tasks at a time until one succeeds';
}

function nameOf({ name, worker_id }: WorkerWire): string {
  return name ?? worker_id.slice(0, 13);
}

function Demand({ scaling }: { scaling: ScalingWire }) {
  const { desired, current, waiting, reason, provisioner } = scaling;
  return (
    <>
      <p class="dim sentence">{reason}</p>
      <dl class="tiles">
        <Tile label="There are" value={plural(current, 'worker')} />
        <Tile label="There should be" value={plural(desired, 'worker')} />
        <Tile label="Tasks that wait only for a worker" value={count(waiting)} />
        {provisioner.failing_since === null ? null : (
          <Tile
            label="Asking for workers fails"
            value={ago(provisioner.failing_since)}
            note={provisioner.error ?? ''}
            tone="bad"
          />
        )}
      </dl>
    </>
  );
}

const columns: readonly Column<WorkerWire>[] = [
  {
    title: 'Worker',
    cell: (worker) => (
      <>
        <a class="strong" href={href('workers', worker.worker_id)}>
          {nameOf(worker)}
        </a>
        <div class="dim">
          {[worker.host, worker.version].filter((text) => text !== null).join(', ')}
        </div>
      </>
    ),
  },
  { title: 'Status', cell: (worker) => <WorkerState worker={worker} /> },
  {
    title: 'Load',
    cell: (worker) => (
      <Meter
        value={worker.current_load}
        max={worker.capacity}
        label={`Load of ${nameOf(worker)}`}
      />
    ),
  },
  {
    title: 'Takes',
    cell: (worker) => (
      <>
        {takes(worker)}
        {worker.capabilities.length === 0 ? null : (
          <div class="dim">has {worker.capabilities.join(', ')}</div>
        )}
      </>
    ),
  },
  {
    title: 'Memory',
    cell: ({ memory_usage }) => (memory_usage === null ? '–' : percent(memory_usage)),
  },
  {
    title: 'Loop delay',
    cell: ({ event_loop_delay_ms: delay }) => (delay === null ? '–' : `${Math.round(delay)} ms`),
  },
  { title: 'Last heard', cell: (worker) => <Ago at={worker.last_heartbeat_at} /> },
  { title: 'Since', cell: (worker) => <Ago at={worker.registered_at} /> },
];

function drainColumn(onDrain: (worker: WorkerWire) => void): Column<WorkerWire> {
  return {
    title: 'Action',
    cell: (worker) =>
      worker.status === 'active' ? (
        <button type="button" onClick={() => onDrain(worker)}>
          Drain …
        </button>
      ) : null,
  };
}

function takes({ task_types, queues }: WorkerWire): string {
  const types = listed(task_types, 'every type');
  return queues === null ? types : `${types} of ${listed(queues, 'every queue')}`;
}

function listed(names: readonly string[] | null, all: string): string {
  if (names === null) return all;
  const shown = names.slice(0, 4).join(', ');
  return names.length > 4 ? `${shown} and ${count(names.length - 4)} more` : shown;
}

function WorkerState({ worker }: { worker: WorkerWire }) {
  const { status, benched_until: until } = worker;
  if (status === 'active' && until !== null) {
    const isSuspended = Date.parse(until) > Date.now();
    return <Badge tone="warn">{isSuspended ? 'gets no tasks' : 'is tried again'}</Badge>;
  }
  const tone = { active: 'good', draining: 'warn', dead: 'bad' } as const;
  return <Badge tone={tone[status]}>{status}</Badge>;
}
