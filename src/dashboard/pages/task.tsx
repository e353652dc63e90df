import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { hasEnded } from '../../domain/task-state.js';
import { priorities, type Priority } from '../../domain/priority.js';
import type { AttemptErrorWire, ExplanationWire, TaskWire } from '../../protocol/tasks-schema.js';
import {
  Ago,
  Badge,
  Failure,
  Loading,
  Meter,
  Panel,
  PriorityMark,
  QueueLink,
  StateBadge,
  type Tone,
} from '../components/bits.js';
import { useConfirm } from '../components/dialog.js';
import { JsonView } from '../components/json-view.js';
import { config } from '../config.js';
import { memberOf, parseExact, withoutMember, type JsonTree } from '../exact-json.js';
import { ago, clock, count, dateTime, duration, plural, words } from '../format.js';
import { call, send } from '../http.js';
import { useTaskEvents } from '../live-task.js';
import { attempt } from '../notices.js';
import { usePolled } from '../polled.js';
import { href } from '../href.js';
import { DuplicateDialog } from './duplicate.js';

interface Loaded {
  readonly task: TaskWire;
  /** The same, with numbers as they were written. */
  readonly exact: JsonTree;
}

export function TaskPage({ id }: { id: string }) {
  const path = `tasks/${encodeURIComponent(id)}`;
  const loaded = usePolled(`${path}?include=history`, { everyMs: 5_000 }, askTask);
  const isOver = loaded.data !== null && hasEnded(loaded.data.task.status);
  const explained = usePolled<ExplanationWire>(isOver ? null : `${path}/explain`, {
    everyMs: 3_000,
  });
  useTaskEvents(id, loaded.reload);
  if (loaded.data === null) {
    return loaded.error === null ? <Loading /> : <Failure error={loaded.error} />;
  }
  const { task, exact } = loaded.data;
  return (
    <>
      <p class="crumbs">
        <a href={href('tasks')}>Tasks</a> / <QueueLink name={task.queue} /> / {task.task_type}
      </p>
      <div class="between">
        <div>
          <h1>
            {task.task_type} <StateBadge state={task.status} />
          </h1>
          <span class="mono dim">{task.task_id}</span>
        </div>
        <Actions task={task} exact={exact} onDone={loaded.reload} />
      </div>
      <Failure error={loaded.error} />
      {isOver || explained.data === null ? null : (
        <Explained explanation={explained.data} task={task} />
      )}
      {task.error === null ? null : (
        <TaskError error={task.error} exact={memberOf(exact, 'error')} />
      )}
      <Panel title="About it">
        <Facts task={task} />
      </Panel>
      <div class="columns">
        <div>
          <Panel title="Parameters">
            <Json tree={memberOf(exact, 'parameters')} label="Parameters" />
          </Panel>
          <Panel title="Result">
            <Json tree={memberOf(exact, 'result')} label="Result" />
          </Panel>
        </div>
        <div>
          <Panel title="States">
            <States task={task} />
          </Panel>
          <Panel title="Attempts">
            <Attempts task={task} exact={memberOf(exact, 'attempts')} />
          </Panel>
        </div>
      </div>
    </>
  );
}

async function askTask(path: string, signal: AbortSignal): Promise<Loaded> {
  const text = await call('GET', path, undefined, signal);
  return { task: JSON.parse(text) as TaskWire, exact: parseExact(text) };
}

function Json({ tree, label }: { tree: JsonTree | null; label: string }) {
  if (tree === null || tree.kind === 'null') return <p class="dim">None.</p>;
  return <JsonView tree={tree} label={label} />;
}

function Explained({ explanation, task }: { explanation: ExplanationWire; task: TaskWire }) {
  const { reasons, notes, queue_position, estimated_wait_seconds, estimated_start_time } =
    explanation;
  if (task.status === 'executing' || task.status === 'assigned') {
    const { progress } = task;
    if (progress === null) return null;
    return (
      <Panel title="Progress">
        <Meter
          value={progress.percent}
          max={100}
          label="Progress"
          text={`${progress.percent} %${progress.message === null ? '' : `, ${progress.message}`}`}
        />
      </Panel>
    );
  }
  // The sentence below says how many come before it.
  const shown = reasons.filter(({ kind }) => kind !== 'behind' || queue_position === null);
  return (
    <Panel title="Why it is not running">
      {shown.length === 0 ? (
        <p>{reasons.length === 0 ? 'Nothing keeps it: it is next.' : 'It waits for its turn.'}</p>
      ) : (
        <ul class="reasons">
          {shown.map(({ kind, detail, until }) => (
            <li key={`${kind}${detail}`}>
              {detail}
              {until === undefined || Date.parse(until) - Date.now() < 2_000 ? null : (
                <span class="dim"> ({ago(until)})</span>
              )}
            </li>
          ))}
        </ul>
      )}
      <p class="dim">
        {queue_position === null
          ? 'It does not stand in line.'
          : queue_position === 0
            ? 'No task of its queue comes before it.'
            : `${plural(queue_position, 'task')}${queue_position >= 1_000 ? ' or more' : ''} of its queue ${queue_position === 1 ? 'comes' : 'come'} before it.`}
        {estimated_start_time === null
          ? ' When it starts is not known.'
          : ` It should start in about ${duration(estimated_wait_seconds)}, at ${clock(estimated_start_time)}.`}
      </p>
      {(notes ?? []).map((note) => (
        <p key={note} class="dim">
          {note}
        </p>
      ))}
    </Panel>
  );
}

function TaskError({ error, exact }: { error: AttemptErrorWire; exact: JsonTree | null }) {
  return (
    <Panel
      title={`Error: ${error.code}`}
      actions={
        <Badge tone={error.retriable ? 'warn' : 'bad'}>
          {error.retriable ? 'retriable' : 'not retriable'}
        </Badge>
      }
    >
      <p>{error.message}</p>
      <ErrorDetails exact={exact} />
    </Panel>
  );
}

/** Where it was thrown, and what else it says, folded. */
function ErrorDetails({ exact }: { exact: JsonTree | null }) {
  const details = exact === null ? null : memberOf(exact, 'details');
  if (details === null) return null;
  const stack = memberOf(details, 'stack');
  const others = stack?.kind === 'string' ? withoutMember(details, 'stack') : details;
  return (
    <>
      {others.kind === 'object' && others.members.length === 0 ? null : (
        <details>
          <summary>Details</summary>
          <JsonView tree={others} label="Details" />
        </details>
      )}
      {stack?.kind === 'string' ? (
        <details>
          <summary>Stack</summary>
          <pre class="stack">{stack.value}</pre>
        </details>
      ) : null}
    </>
  );
}

function Facts({ task }: { task: TaskWire }) {
  const facts: readonly (readonly [string, ComponentChildren])[] = [
    ['Queue', <QueueLink key="queue" name={task.queue} />],
    [
      'Priority',
      <span key="priority">
        <PriorityMark priority={task.priority} />
        {task.effective_priority === task.priority
          ? null
          : ` (by age now ${task.effective_priority})`}
      </span>,
    ],
    ['Submitted', <Ago key="created" at={task.created_at} />],
    ['In this state for', duration(task.current_state_duration_seconds)],
    [
      'Attempts',
      `${count(task.attempt)}, ${plural(task.retry_count, 'retry', 'retries')} of ${count(task.max_retries)}`,
    ],
    ['Ran', duration(task.execution_duration_seconds)],
    ['Timeout', duration(task.timeout_seconds)],
    ['Not before', optional(task.run_at, dateTime)],
    ['Must start by', optional(task.dispatch_deadline, dateTime)],
    ['Worker', optional(task.assigned_worker_id, (id) => <WorkerLink id={id} />)],
    ['Cost', costText(task.cost)],
    ['Really used', costText(task.usage)],
    ['User', task.user_id],
    [
      'Workflow',
      optional(task.workflow_id, (id) => (
        <a href={`${href('tasks')}?workflow_id=${encodeURIComponent(id)}`}>{id}</a>
      )),
    ],
    ['Tags', task.tags.length === 0 ? null : task.tags.join(', ')],
    [
      'Capabilities',
      task.required_capabilities.length === 0 ? null : task.required_capabilities.join(', '),
    ],
    ['Idempotency key', task.idempotency_key],
    [
      'Trace',
      <span key="trace" class="mono">
        {task.trace_id}
      </span>,
    ],
    ['Put off, at no cost', task.deferrals === 0 ? null : plural(task.deferrals, 'time')],
    ['Taken and never started', task.returns === 0 ? null : plural(task.returns, 'time')],
  ];
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== null)
        .map(([name, value]) => (
          <div key={name} class={name === 'Trace' ? 'wide' : ''}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

function optional<Value>(value: Value | null, show: (value: Value) => ComponentChildren) {
  return value === null ? null : show(value);
}

function costText(cost: Readonly<Record<string, number>> | null): string | null {
  const units = Object.entries(cost ?? {});
  return units.length === 0
    ? null
    : units.map(([unit, value]) => `${count(value)} ${unit}`).join(', ');
}

const toneOfState: Readonly<Record<string, Tone>> = {
  completed: 'good',
  executing: 'busy',
  assigned: 'busy',
  dead_letter: 'bad',
  failed: 'bad',
};

function States({ task }: { task: TaskWire }) {
  const states = task.state_history ?? [];
  return (
    <ol class="timeline">
      {states.map(({ state, at, reason, attempt: number }, index) => {
        const next = states[index + 1]?.at;
        const lasted = next === undefined ? null : (Date.parse(next) - Date.parse(at)) / 1000;
        return (
          <li key={`${at}${state}`} class={toneOfState[state] ?? ''}>
            <b>{words(state)}</b>
            {number === undefined ? null : <span class="dim"> attempt {number}</span>}{' '}
            <time class="dim" dateTime={at} title={dateTime(at)}>
              {clock(at)}
            </time>
            {lasted === null ? null : <span class="dim">, for {duration(lasted)}</span>}
            {reason === undefined ? null : <div class="dim">{reason}</div>}
          </li>
        );
      })}
    </ol>
  );
}

const toneOfOutcome: Readonly<Record<string, Tone>> = {
  succeeded: 'good',
  failed: 'bad',
  timed_out: 'bad',
  lapsed: 'warn',
  deferred: 'warn',
};

function Attempts({ task, exact }: { task: TaskWire; exact: JsonTree | null }) {
  const attempts = task.attempts ?? [];
  if (attempts.length === 0) return <p class="dim">No attempt has ended yet.</p>;
  return (
    <ol class="timeline">
      {attempts.map(({ attempt: number, started_at, ended_at, outcome, error, worker_id }, at) => (
        <li key={number} class={toneOfOutcome[outcome] ?? ''}>
          <b>
            {number}: {words(outcome)}
          </b>{' '}
          <span class="dim">
            after {duration((Date.parse(ended_at) - Date.parse(started_at)) / 1000)}, on worker{' '}
            <WorkerLink id={worker_id} />
          </span>
          {error === undefined ? null : (
            <div>
              <span class="mono">{error.code}</span>: {error.message}
              <ErrorDetails exact={errorOf(exact, at)} />
            </div>
          )}
        </li>
      ))}
    </ol>
  );
}

function errorOf(attempts: JsonTree | null, at: number): JsonTree | null {
  const attempt = attempts?.kind === 'array' ? attempts.items[at] : undefined;
  return attempt === undefined ? null : memberOf(attempt, 'error');
}

function WorkerLink({ id }: { id: string }) {
  return (
    <a class="mono" href={href('workers', id)} title={id}>
      {id.slice(0, 13)}…
    </a>
  );
}

function Actions({ task, exact, onDone }: Loaded & { onDone: () => void }) {
  const [confirm, ask] = useConfirm();
  const [isDuplicating, setDuplicating] = useState(false);
  const path = `tasks/${task.task_id}`;
  const does = async (done: string, action: () => Promise<unknown>) => {
    const isDone = await attempt(done, action);
    onDone();
    return isDone;
  };
  const isOver = hasEnded(task.status);
  const waits = task.status === 'pending' || task.status === 'queued';
  const { submit, operate } = config.may;
  return (
    <div class="actions">
      {submit && waits ? (
        <select
          aria-label="Change the priority"
          value={task.priority}
          onChange={(event) => {
            const priority = event.currentTarget.value as Priority;
            void does(`Its priority is ${priority}.`, () => send('PATCH', path, { priority }));
          }}
        >
          {priorities.map((priority) => (
            <option key={priority} value={priority}>
              {priority} priority
            </option>
          ))}
        </select>
      ) : null}
      {submit ? (
        <button type="button" onClick={() => setDuplicating(true)}>
          Duplicate …
        </button>
      ) : null}
      {operate && isOver && task.status !== 'completed' ? (
        <button
          type="button"
          class="main"
          onClick={() => void does('It runs again.', () => send('POST', `${path}/replay`))}
        >
          Replay
        </button>
      ) : null}
      {submit && !isOver ? (
        <button
          type="button"
          class="danger"
          onClick={() =>
            ask({
              title: 'Cancel this task?',
              text: (
                <p>
                  {task.status === 'executing' ? 'Its worker is told to stop. ' : ''}A cancelled
                  task can be replayed.
                </p>
              ),
              button: 'Cancel the task',
              action: () => does('It is cancelled.', () => send('DELETE', path)),
            })
          }
        >
          Cancel
        </button>
      ) : null}
      {confirm}
      {isDuplicating ? (
        <DuplicateDialog task={task} exact={exact} onClose={() => setDuplicating(false)} />
      ) : null}
    </div>
  );
}
