import { useState } from 'preact/hooks';
import { limitText } from '../../domain/limit-text.js';
import type { QueueWire } from '../../protocol/queues-schema.js';
import { Empty, Failure, Loading, Meter, Panel, Tile } from '../components/bits.js';
import { RangeSwitch, rangeOf } from '../components/range.js';
import { FormDialog } from '../components/form-dialog.js';
import { config } from '../config.js';
import { ago, compact, count, duration, plural } from '../format.js';
import { Refused, send } from '../http.js';
import { attempt } from '../notices.js';
import { usePolled } from '../polled.js';
import { href } from '../href.js';
import { route } from '../router.js';
import { useSeries } from '../series.js';
import { useStore } from '../store.js';
import { Pushbacks } from './pushbacks.js';
import { QueueCharts, queueMetrics } from './queue-charts.js';
import { QueueForecast } from './queue-forecast.js';
import { QueueSettings } from './queue-settings.js';
import { TaskTypes } from './task-types.js';
import { QueueState, waitingIn } from './queues.js';
import { TaskList } from '../components/task-list.js';

export function QueuePage({ name }: { name: string }) {
  const path = `queues/${encodeURIComponent(name)}`;
  const queue = usePolled<QueueWire>(path, { everyMs: 2_000 });
  const range = rangeOf(useStore(route).search.get('range'));
  const course = useSeries(queueMetrics, range, name);
  const [isEditing, setEditing] = useState(false);
  if (queue.data === null) {
    if (queue.error instanceof Refused && queue.error.status === 404)
      return <Missing name={name} />;
    return queue.error === null ? <Loading /> : <Failure error={queue.error} />;
  }
  return (
    <>
      <p class="crumbs">
        <a href={href('queues')}>Queues</a>
      </p>
      <div class="between">
        <h1>
          {name} <QueueState queue={queue.data} />
        </h1>
        <Actions
          queue={queue.data}
          path={path}
          onDone={queue.reload}
          onEdit={() => setEditing(true)}
        />
      </div>
      <Failure error={queue.error} />
      <Stopped queue={queue.data} />
      <Tiles queue={queue.data} />
      <QueueForecast path={path} />
      <LimitUse queue={queue.data} />
      <Pushbacks path={path} />
      <div class="between">
        <h2 class="heading">Over the last {range}</h2>
        <RangeSwitch range={range} />
      </div>
      {course.data === null ? (
        <Failure error={course.error} />
      ) : (
        <QueueCharts course={course.data} queue={queue.data} range={range} />
      )}
      <TaskTypes queue={name} />
      <TaskList filter={{ queue: name }} title="Its newest tasks" />
      {isEditing ? (
        <QueueSettings
          queue={queue.data}
          path={path}
          onClose={() => setEditing(false)}
          onDone={queue.reload}
        />
      ) : null}
    </>
  );
}

function Missing({ name }: { name: string }) {
  return (
    <Empty title={`There is no queue ${name}.`} command={`sluice submit hello --queue ${name}`}>
      <p>Its first task makes it:</p>
    </Empty>
  );
}

function Actions({
  queue,
  path,
  onDone,
  onEdit,
}: {
  queue: QueueWire;
  path: string;
  onDone: () => void;
  onEdit: () => void;
}) {
  const [isPausing, setPausing] = useState(false);
  const resume = async () => {
    await attempt(`${queue.name} goes on.`, () => send('POST', `${path}/resume`));
    onDone();
  };
  return (
    <div class="actions">
      {config.may.admin ? (
        <button type="button" onClick={onEdit}>
          Settings …
        </button>
      ) : null}
      {!config.may.operate ? null : queue.paused ? (
        <button type="button" class="main" onClick={() => void resume()}>
          Resume
        </button>
      ) : (
        <button type="button" onClick={() => setPausing(true)}>
          Pause …
        </button>
      )}
      {isPausing ? (
        <PauseDialog queue={queue} path={path} onClose={() => setPausing(false)} onDone={onDone} />
      ) : null}
    </div>
  );
}

const pauses: readonly (readonly [string, number | null])[] = [
  ['until it is resumed', null],
  ['for 5 minutes', 300],
  ['for an hour', 3_600],
  ['for a day', 86_400],
];

function PauseDialog({
  queue,
  path,
  onClose,
  onDone,
}: {
  queue: QueueWire;
  path: string;
  onClose: () => void;
  onDone: () => void;
}) {
  const [seconds, setSeconds] = useState<number | null>(null);
  const pause = async () => {
    const until =
      seconds === null ? {} : { until: new Date(Date.now() + seconds * 1000).toISOString() };
    await attempt(`${queue.name} is paused.`, () => send('POST', `${path}/pause`, until));
    onClose();
    onDone();
  };
  return (
    <FormDialog title={`Pause ${queue.name}`} onClose={onClose} button="Pause" submit={pause}>
      <p>What runs goes on ({plural(queue.live.running, 'task')}); nothing more of it is taken.</p>
      <div class="field">
        <label for="pause-for">How long</label>
        <select
          id="pause-for"
          onChange={(event) => setSeconds(pauses[event.currentTarget.selectedIndex]?.[1] ?? null)}
        >
          {pauses.map(([text]) => (
            <option key={text}>{text}</option>
          ))}
        </select>
      </div>
    </FormDialog>
  );
}

function Stopped({ queue }: { queue: QueueWire }) {
  const { live, paused, paused_until } = queue;
  if (live.circuit === 'closed' && !paused) return null;
  const why = paused ? 'An operator paused it' : (live.paused_why ?? 'Its service pushes back');
  const until = paused ? paused_until : live.paused_until;
  return (
    <section class="concerns" aria-label="Why it stands still">
      <p>
        {why}
        {until === null ? (paused ? ', until it is resumed.' : '.') : `, it goes on ${ago(until)}.`}
        {live.recovery_factor < 1
          ? ` It recovers, with ${live.recovery_factor * 100} % of its limits.`
          : ''}
      </p>
    </section>
  );
}

function Tiles({ queue }: { queue: QueueWire }) {
  const { live, max_concurrency, max_active } = queue;
  const { started, completed, failed } = live.last_minute;
  const waiting = waitingIn(queue);
  return (
    <dl class="tiles">
      <Tile label="Waiting" value={count(waiting)} note={depthNote(queue)} />
      <Tile
        label="Running"
        value={<Meter value={live.running} max={max_concurrency} label="Running" />}
        note={max_concurrency === null ? 'no limit' : 'at once, in the whole cluster'}
      />
      <Tile
        label="Completed in the last minute"
        value={count(completed)}
        note={`${count(started)} started, ${count(failed)} failed`}
      />
      <Tile label="Oldest task waits" value={duration(live.oldest_age_seconds)} />
      {max_active === null ? null : (
        <Tile
          label="Not ended"
          value={
            <Meter value={live.active ?? 0} max={max_active} label="Tasks that have not ended" />
          }
          note="further ones are refused"
        />
      )}
    </dl>
  );
}

function depthNote({ live }: QueueWire): string {
  const { high, medium, low } = live.depth;
  const ready = `high ${compact(high)}, medium ${compact(medium)}, low ${compact(low)}`;
  return live.backlog === 0 ? ready : `${ready}, further back ${compact(live.backlog)}`;
}

function LimitUse({ queue }: { queue: QueueWire }) {
  const { usage } = queue.live;
  if (usage.length === 0) return null;
  return (
    <Panel title="Limits">
      <Debts queue={queue} />
      <div class="fields">
        {usage.map(
          ({ limit, unit, used, allowed, per_seconds, counted_seconds, next_in_ms }, index) => (
            <div key={`${limit ?? ''}${unit}${index}`} class="field">
              <span>
                {limit === null ? '' : `${limit}: `}
                {limitText({ unit, rate: allowed, perSeconds: per_seconds, burst: null })}
              </span>
              <Meter
                value={used}
                max={allowed}
                label={`Used of ${unit}`}
                text={`${count(used)} used in the last ${duration(Math.min(per_seconds, counted_seconds))}`}
              />
              <span class="hint">
                {next_in_ms <= 0
                  ? 'a task may start now'
                  : `the next task may start in ${duration(next_in_ms / 1000)}`}
              </span>
            </div>
          ),
        )}
      </div>
    </Panel>
  );
}

/** A limit whose tokens are below zero. */
function Debts({ queue }: { queue: QueueWire }) {
  const owed = Object.entries(queue.live.tokens).filter(([, left]) => left <= -0.5);
  if (owed.length === 0) return null;
  return (
    <p class="bad-text">
      {owed.map(([unit, left]) => `${count(-left)} ${unit} are owed`).join(', ')}: tasks used more
      than they reserved. Nothing starts until that has come in again.
    </p>
  );
}
