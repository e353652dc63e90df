import type { ComponentChildren } from 'preact';
import type { Priority } from '../../domain/priority.js';
import type { TaskState } from '../../domain/task-state.js';
import { ago, compact, dateTime, words } from '../format.js';
import { explain } from '../http.js';
import { isUnreachable } from '../polled.js';
import { href } from '../href.js';
import { useNow } from './now.js';

export type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'idle';

const toneOfState: Readonly<Record<TaskState, Tone>> = {
  pending: 'idle',
  queued: 'warn',
  assigned: 'busy',
  executing: 'busy',
  completed: 'good',
  dead_letter: 'bad',
  failed: 'bad',
  cancelled: 'idle',
};

export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

export function StateBadge({ state }: { state: TaskState }) {
  return <Badge tone={toneOfState[state]}>{words(state)}</Badge>;
}

export function PriorityMark({ priority }: { priority: Priority }) {
  return <span class={`priority ${priority}`}>{priority}</span>;
}

/** How long ago, with the whole instant in its title. */
export function Ago({ at }: { at: string | null }) {
  const nowMs = useNow();
  if (at === null) return <span class="dim">–</span>;
  return (
    <time dateTime={at} title={dateTime(at)}>
      {ago(at, nowMs)}
    </time>
  );
}

export function TaskLink({ id }: { id: string }) {
  return (
    <a class="mono" href={href('tasks', id)} title={id}>
      {id.slice(0, 8)}…{id.slice(-6)}
    </a>
  );
}

export function QueueLink({ name }: { name: string }) {
  return (
    <a class="name" href={href('queues', name)} title={name}>
      {name}
    </a>
  );
}

/** How full something is: `12 / 50`, with a bar. */
export function Meter({
  value,
  max,
  label,
  text,
}: {
  value: number;
  max: number | null;
  label: string;
  text?: string;
}) {
  if (max === null || max <= 0) return <span class="meter">{text ?? compact(value)}</span>;
  const share = Math.min(1, Math.max(0, value / max));
  const tone = share >= 0.98 ? 'full' : share >= 0.8 ? 'high' : '';
  return (
    <span class="meter">
      <span>{text ?? `${compact(value)} / ${compact(max)}`}</span>
      <progress class={tone} max={1} value={share} aria-label={label} />
    </span>
  );
}

export function Tile({
  label,
  value,
  note,
  tone,
}: {
  label: string;
  value: ComponentChildren;
  note?: ComponentChildren;
  tone?: Tone;
}) {
  return (
    <div class={`tile ${tone ?? ''}`}>
      <dt>{label}</dt>
      <dd>
        <span class="figure">{value}</span>
        {note === undefined ? null : <span class="dim">{note}</span>}
      </dd>
    </div>
  );
}

export function Panel({
  title,
  actions,
  children,
  isFlush = false,
}: {
  title: string;
  actions?: ComponentChildren;
  children: ComponentChildren;
  isFlush?: boolean;
}) {
  return (
    <section class={`panel ${isFlush ? 'flush' : ''}`} aria-label={title}>
      <header>
        <h2>{title}</h2>
        {actions}
      </header>
      {children}
    </section>
  );
}

/** Says what a newcomer types next. */
export function Empty({
  title,
  children,
  command,
}: {
  title: string;
  children?: ComponentChildren;
  command?: string;
}) {
  return (
    <div class="empty">
      <p class="strong">{title}</p>
      {children}
      {command === undefined ? null : <pre>{command}</pre>}
    </div>
  );
}

/** Nothing when the banner about the connection says it. */
export function Failure({ error }: { error: unknown }) {
  if (error === null || error === undefined || isUnreachable(error)) return null;
  return (
    <p class="failure" role="alert">
      {explain(error)}
    </p>
  );
}

export function Loading() {
  return <p class="loading">Loading …</p>;
}

/** Under a list that goes on. */
export function Pager({ showMore }: { showMore: (() => void) | null }) {
  if (showMore === null) return null;
  return (
    <div class="pager">
      <button type="button" onClick={showMore}>
        Show more
      </button>
    </div>
  );
}
