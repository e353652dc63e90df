import { useState } from 'preact/hooks';
import { priorities, type Priority } from '../../domain/priority.js';
import type { ReceiptWire, TaskWire } from '../../protocol/tasks-schema.js';
import { FormDialog } from '../components/form-dialog.js';
import { config } from '../config.js';
import { memberOf, parseExact, printExact, type JsonTree } from '../exact-json.js';
import { dateTime } from '../format.js';
import { send } from '../http.js';
import { tell } from '../notices.js';
import { href } from '../href.js';
import { go } from '../router.js';

/** A new task with the same settings, whose parameters can be edited first. */
export function DuplicateDialog({
  task,
  exact,
  onClose,
}: {
  task: TaskWire;
  exact: JsonTree;
  onClose: () => void;
}) {
  const [queue, setQueue] = useState(task.queue);
  const [priority, setPriority] = useState<Priority>(task.priority);
  const [parameters, setParameters] = useState(() => shownParameters(exact));

  const submit = async () => {
    if (parseExact(parameters).kind !== 'object') throw new Error('Parameters are a JSON object.');
    // The text of the parameters goes out as it stands: big numbers keep their digits.
    const body = `${JSON.stringify({ ...settingsOf(task), queue, priority }).slice(0, -1)},"parameters":${parameters}}`;
    const { task_id } = await send<ReceiptWire>('POST', 'tasks', body);
    onClose();
    tell('good', 'The new task is submitted.');
    go(href('tasks', task_id));
  };

  return (
    <FormDialog
      title={`New task like ${task.task_id.slice(0, 8)}…`}
      onClose={onClose}
      isWide
      button="Submit"
      submit={submit}
    >
      <div class="fields">
        <div class="field">
          <label for="duplicate-queue">Queue</label>
          <input
            id="duplicate-queue"
            value={queue}
            onInput={(event) => setQueue(event.currentTarget.value)}
          />
        </div>
        <div class="field">
          <label for="duplicate-priority">Priority</label>
          <select
            id="duplicate-priority"
            value={priority}
            onChange={(event) => setPriority(event.currentTarget.value as Priority)}
          >
            {priorities.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </div>
      </div>
      <Kept task={task} />
      <div class="field">
        <label for="duplicate-parameters">Parameters (JSON)</label>
        <textarea
          id="duplicate-parameters"
          spellcheck={false}
          value={parameters}
          onInput={(event) => setParameters(event.currentTarget.value)}
        />
      </div>
    </FormDialog>
  );
}

/** What the new task has of the old one beside its settings, and what it has not. */
function Kept({ task }: { task: TaskWire }) {
  const left = [
    ...(task.workflow_id === null ? [] : ['its workflow']),
    ...(task.dispatch_deadline === null ? [] : ['the deadline for its start']),
    ...(task.idempotency_key === null ? [] : ['its idempotency key']),
  ];
  return (
    <>
      {isAhead(task.run_at) ? (
        <p>It does not start before {dateTime(task.run_at)}, like this one.</p>
      ) : null}
      {left.length === 0 ? null : <p class="dim">Not copied: {left.join(', ')}.</p>}
    </>
  );
}

function isAhead(at: string | null): at is string {
  return at !== null && Date.parse(at) > Date.now();
}

/** What is hidden from the reader is not copied into a new task. */
function shownParameters(exact: JsonTree): string {
  const parameters = memberOf(exact, 'parameters');
  return config.isRedacted || parameters === null ? '{}' : printExact(parameters);
}

function settingsOf(task: TaskWire) {
  const { task_type, required_capabilities, timeout_seconds, max_retries, tags } = task;
  const { cost, user_id, run_at } = task;
  return {
    task_type,
    required_capabilities,
    timeout_seconds,
    max_retries,
    tags,
    ...(cost === null ? {} : { cost }),
    ...(user_id === null ? {} : { user_id }),
    ...(isAhead(run_at) ? { run_at } : {}),
  };
}
