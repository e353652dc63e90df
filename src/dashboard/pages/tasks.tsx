import { useState } from 'preact/hooks';
import { taskStates } from '../../domain/task-state.js';
import { useBulk } from '../components/bulk-dialog.js';
import { FilterText } from '../components/filter-text.js';
import { Count } from '../components/task-count.js';
import { TaskList } from '../components/task-list.js';
import { config } from '../config.js';
import { words } from '../format.js';
import { href } from '../href.js';
import { tell } from '../notices.js';
import { go, route, setSearch } from '../router.js';
import { useStore } from '../store.js';
import { bulkActionsFor } from '../task-bulk.js';
import { searchFrom, type TaskSearch } from '../task-search.js';

export function TasksPage() {
  const search = searchFrom(useStore(route).search);
  const [dialog, ask] = useBulk();
  const [changes, setChanges] = useState(0);
  const { text, ...filter } = search;
  const hasFilter = Object.keys(filter).length > 0;
  const actions =
    config.may.operate && hasFilter && text === undefined ? bulkActionsFor(filter) : [];
  return (
    <>
      <h1>Tasks</h1>
      <Filters search={search} />
      {hasFilter && text === undefined ? (
        <Count key={JSON.stringify(filter)} filter={filter} />
      ) : null}
      {hasFilter && text !== undefined && config.may.operate ? (
        <p class="dim">Actions on all matches do not go by text: take it out to act on the rest.</p>
      ) : null}
      <TaskList
        key={changes}
        filter={search}
        actions={
          actions.length === 0 ? null : (
            <span class="actions">
              {actions.map(({ label, bulk }) => (
                <button
                  key={label}
                  type="button"
                  onClick={() => ask({ ...bulk, onDone: () => setChanges((last) => last + 1) })}
                >
                  {label}
                </button>
              ))}
            </span>
          )
        }
      />
      {dialog}
    </>
  );
}

const filterTexts = [
  ['queue', 'Queue'],
  ['task_type', 'Task type'],
  ['user_id', 'User'],
  ['workflow_id', 'Workflow'],
  ['tag', 'Tag'],
] as const;

function Filters({ search }: { search: TaskSearch }) {
  return (
    <div class="toolbar filters">
      <select
        aria-label="Status"
        value={search.status ?? ''}
        onChange={(event) => setSearch({ status: event.currentTarget.value })}
      >
        <option value="">Any status</option>
        {taskStates.map((state) => (
          <option key={state} value={state}>
            {words(state)}
          </option>
        ))}
      </select>
      {filterTexts.map(([name, label]) => (
        <FilterText
          key={name}
          name={name}
          label={`${label}, the whole name`}
          placeholder={label}
          value={search[name] ?? ''}
        />
      ))}
      {config.isRedacted ? null : (
        <FilterText
          name="text"
          label="Text in parameters: a plain part of their JSON, capitals and all"
          placeholder="Text in parameters"
          value={search.text ?? ''}
        />
      )}
      <TaskId />
    </div>
  );
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** There is one task at most: it leads there. */
function TaskId() {
  const [text, setText] = useState('');
  return (
    <input
      type="search"
      aria-label="Task id, opens the task"
      placeholder="Task id"
      value={text}
      onInput={(event) => setText(event.currentTarget.value)}
      onChange={() => {
        const id = text.trim();
        if (uuid.test(id)) go(href('tasks', id));
        else if (id !== '')
          tell('bad', `${id} is not the id of a task: 36 characters with hyphens.`);
      }}
    />
  );
}
