import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import type { QueueWire } from '../../protocol/queues-schema.js';
import type { SeriesWire } from '../../protocol/series-schema.js';
import { Badge, Empty, Failure, Loading, Meter, QueueLink } from '../components/bits.js';
import { Dialog } from '../components/dialog.js';
import { Sparkline } from '../components/sparkline.js';
import { VirtualRows } from '../components/virtual-rows.js';
import { ago, compact, count, duration, plural } from '../format.js';
import { get, query } from '../http.js';
import { useQueueList } from '../queue-list.js';
import { route, setSearch } from '../router.js';
import { useStore } from '../store.js';
import { SharedLimits } from './shared-limits.js';
import { toCourse } from '../series.js';

const columns = {
  name: 'Queue',
  waiting: 'Waiting',
  rate: 'Done / min',
  limit: 'Limit used',
  tokens: 'Tokens left',
  running: 'Running',
  oldest: 'Oldest',
} as const;
type Column = keyof typeof columns;

const rowPx = { table: 40, card: 132 };

export function QueuesPage() {
  const { search } = useStore(route);
  const sought = search.get('search') ?? '';
  const sort = (search.get('sort') ?? 'waiting') as Column;
  const isTurned = search.get('order') === 'turned';
  const { queues: data, error, look } = useQueueList();
  const isNarrow = useNarrow();
  const [showsLimits, setShowsLimits] = useState(false);
  const rows = useMemo(
    () => sortQueues(filterQueues(data ?? [], sought), sort, isTurned),
    [data, sought, sort, isTurned],
  );
  const [lines, wantLines] = useLines();
  const onShown = useCallback(
    (shown: readonly QueueWire[]) => {
      const names = shown.map(({ name }) => name);
      look(names);
      wantLines(names);
    },
    [look, wantLines],
  );
  const render = useCallback(
    (queue: QueueWire) => <Row key={queue.name} queue={queue} line={lines.get(queue.name)} />,
    [lines],
  );
  if (data === null) return error === null ? <Loading /> : <Failure error={error} />;
  return (
    <>
      <div class="between">
        <h1>Queues</h1>
        <span class="dim">
          {rows.length === data.length
            ? plural(data.length, 'queue')
            : `${count(rows.length)} of ${plural(data.length, 'queue')}`}
        </span>
      </div>
      <Failure error={error} />
      <div class="toolbar">
        <input
          type="search"
          placeholder="Search by name"
          aria-label="Search queues by name"
          value={sought}
          onInput={(event) => setSearch({ search: event.currentTarget.value })}
        />
        <SortSelect sort={sort} />
        <button type="button" onClick={() => setShowsLimits(true)}>
          Shared limits
        </button>
      </div>
      {data.length === 0 ? (
        <Empty title="There is no queue yet." command="sluice submit hello --queue demo">
          <p>A queue is made by the first task that names it:</p>
        </Empty>
      ) : rows.length === 0 ? (
        <Empty title={`No queue has "${sought}" in its name.`} />
      ) : (
        <VirtualRows
          rows={rows}
          rowHeight={isNarrow ? rowPx.card : rowPx.table}
          label="Queues"
          head={<Head sort={sort} isTurned={isTurned} />}
          render={render}
          onShown={onShown}
        />
      )}
      {showsLimits ? (
        <Dialog title="Shared limits" onClose={() => setShowsLimits(false)} isWide>
          <SharedLimits />
        </Dialog>
      ) : null}
    </>
  );
}

function filterQueues(queues: readonly QueueWire[], sought: string): QueueWire[] {
  const text = sought.trim().toLowerCase();
  return queues.filter(({ name }) => name.toLowerCase().includes(text));
}

/** All tasks in line, also those that the ready queue does not hold. */
export function waitingIn({ live }: QueueWire): number {
  return live.depth.high + live.depth.medium + live.depth.low + live.backlog;
}

/** Of the unit of which least is left; null: it has no limits. */
function leastTokens({ live }: QueueWire): number | null {
  const left = Object.values(live.tokens);
  return left.length === 0 ? null : Math.min(...left);
}

/** The limit of which most is used; null: there is none. */
function tightestLimit({ live }: QueueWire) {
  const share = ({ used, allowed }: { used: number; allowed: number }) => used / allowed;
  return live.usage.reduce<QueueWire['live']['usage'][number] | null>(
    (most, limit) => (most === null || share(limit) > share(most) ? limit : most),
    null,
  );
}

const valueOf: Readonly<Record<Column, (queue: QueueWire) => number | string>> = {
  name: ({ name }) => name,
  waiting: waitingIn,
  rate: ({ live }) => live.last_minute.completed,
  limit: (queue) => {
    const limit = tightestLimit(queue);
    return limit === null ? -1 : limit.used / limit.allowed;
  },
  // The largest debt first.
  tokens: (queue) => -(leastTokens(queue) ?? Infinity),
  running: ({ live }) => live.running,
  oldest: ({ live }) => live.oldest_age_seconds ?? -1,
};

/** Names from A on, numbers from the largest on, unless it is turned round. */
function sortQueues(queues: QueueWire[], column: Column, isTurned: boolean): QueueWire[] {
  const value = valueOf[column];
  const largestFirst = (column === 'name') === isTurned;
  return queues.sort((a, b) => {
    const [one, other] = [value(a), value(b)];
    if (one === other) return a.name < b.name ? -1 : 1;
    return one > other === largestFirst ? -1 : 1;
  });
}

function Head({ sort, isTurned }: { sort: Column; isTurned: boolean }) {
  const direction = (sort === 'name') === isTurned ? 'descending' : 'ascending';
  return (
    <div role="rowgroup">
      <div role="row" class="row head">
        {(Object.keys(columns) as Column[]).map((column) => (
          <span
            key={column}
            role="columnheader"
            class={column}
            aria-sort={column === sort ? direction : 'none'}
          >
            <button
              type="button"
              class="plain"
              onClick={() =>
                setSearch({ sort: column, order: column === sort && !isTurned ? 'turned' : '' })
              }
            >
              {columns[column]}
              {column === sort ? (
                <span aria-hidden="true">{direction === 'ascending' ? ' ↑' : ' ↓'}</span>
              ) : null}
            </button>
          </span>
        ))}
        <span role="columnheader" class="line">
          Waiting, 1 h
        </span>
        <span role="columnheader" class="state">
          State
        </span>
      </div>
    </div>
  );
}

/** On a phone, where the table has no head. */
function SortSelect({ sort }: { sort: Column }) {
  return (
    <select
      class="narrow"
      aria-label="Sort by"
      value={sort}
      onChange={(event) => setSearch({ sort: event.currentTarget.value, order: '' })}
    >
      {Object.entries(columns).map(([column, title]) => (
        <option key={column} value={column}>
          {title}
        </option>
      ))}
    </select>
  );
}

function Row({ queue, line }: { queue: QueueWire; line: readonly number[] | undefined }) {
  const { name, live, max_concurrency } = queue;
  const limit = tightestLimit(queue);
  return (
    <div role="row" class="row">
      <span role="cell" class="name">
        <QueueLink name={name} />
      </span>
      <span role="cell" class="waiting" data-label="Waiting">
        {compact(waitingIn(queue))}
      </span>
      <span role="cell" class="rate" data-label="Done / min">
        {compact(live.last_minute.completed)}
        {live.last_minute.failed > 0 ? (
          <span class="bad-text" title="failed in the last minute">
            {' '}
            −{compact(live.last_minute.failed)}
          </span>
        ) : null}
      </span>
      <span role="cell" class="limit" data-label="Limit used">
        {limit === null ? (
          <span class="dim">no limit</span>
        ) : (
          <Meter
            value={limit.used}
            max={limit.allowed}
            label={`${limit.unit} used of the limit of ${name}`}
            text={`${compact(limit.used)} / ${compact(limit.allowed)} ${limit.unit}`}
          />
        )}
      </span>
      <span role="cell" class="tokens">
        <TokensLeft queue={queue} />
      </span>
      <span role="cell" class="running" data-label="Running">
        <Meter value={live.running} max={max_concurrency} label={`Running of ${name}`} />
      </span>
      <span role="cell" class="oldest" data-label="Oldest">
        {duration(live.oldest_age_seconds)}
      </span>
      <span role="cell" class="line">
        <Sparkline
          values={line ?? []}
          label={`In line over the last hour, ${count(Math.max(0, ...(line ?? [])))} at most`}
        />
      </span>
      <span role="cell" class="state">
        <QueueState queue={queue} />
      </span>
    </div>
  );
}

function TokensLeft({ queue }: { queue: QueueWire }) {
  const left = Object.entries(queue.live.tokens);
  if (left.length === 0) return <span class="dim">–</span>;
  const text = left.map(([unit, tokens]) => `${compact(Math.floor(tokens))} ${unit}`).join(', ');
  const isOwed = left.some(([, tokens]) => tokens < 0);
  return (
    <span class={isOwed ? 'bad-text' : ''} title={isOwed ? `${text}: below zero is owed` : text}>
      {text}
    </span>
  );
}

export function QueueState({ queue }: { queue: QueueWire }) {
  const { live, paused, paused_until } = queue;
  const until = (at: string | null) =>
    at === null ? '' : `, until ${ago(at)}`.replace('until in', 'for');
  if (live.circuit === 'open')
    return <Badge tone="bad">circuit open{until(live.paused_until)}</Badge>;
  if (paused) return <Badge tone="warn">paused{until(paused_until)}</Badge>;
  if (live.circuit === 'half_open') return <Badge tone="warn">recovers</Badge>;
  if (!queue.in_force) return <Badge tone="bad">not in force</Badge>;
  if (live.running > 0) return <Badge tone="busy">running</Badge>;
  return <Badge tone="idle">{waitingIn(queue) > 0 ? 'waits' : 'idle'}</Badge>;
}

/** Lines are asked for when their rows come into sight, four at a time, and kept for a minute. */
function useLines(): [ReadonlyMap<string, readonly number[]>, (names: readonly string[]) => void] {
  const [lines, setLines] = useState<ReadonlyMap<string, readonly number[]>>(new Map());
  const [asker] = useState(() => new LineAsker(setLines));
  useEffect(() => () => asker.stop(), [asker]);
  const [want] = useState(() => (names: readonly string[]) => asker.want(names));
  return [lines, want];
}

class LineAsker {
  readonly #tell: (lines: ReadonlyMap<string, readonly number[]>) => void;
  readonly #lines = new Map<string, readonly number[]>();
  readonly #askedMs = new Map<string, number>();
  readonly #ending = new AbortController();
  #wanted: string[] = [];
  #asking = 0;

  constructor(tell: (lines: ReadonlyMap<string, readonly number[]>) => void) {
    this.#tell = tell;
  }

  want(names: readonly string[]): void {
    const nowMs = performance.now();
    this.#wanted = names.filter((name) => nowMs - (this.#askedMs.get(name) ?? -Infinity) > 60_000);
    while (this.#asking < 4 && this.#wanted.length > 0) void this.#ask();
  }

  stop(): void {
    this.#wanted = [];
    this.#ending.abort();
  }

  async #ask(): Promise<void> {
    this.#asking += 1;
    for (let name = this.#wanted.shift(); name !== undefined; name = this.#wanted.shift()) {
      this.#askedMs.set(name, performance.now());
      try {
        const path = query('series', { metric: 'depth_ms', queue: name });
        const course = toCourse(await get<SeriesWire>(path, this.#ending.signal), Date.now());
        this.#lines.set(name, course.mean('depth_ms'));
        this.#tell(new Map(this.#lines));
      } catch {
        // The row has no line; the next look asks again.
        this.#askedMs.delete(name);
        break;
      }
    }
    this.#asking -= 1;
  }
}

function useNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(() => matchMedia('(max-width: 760px)').matches);
  useEffect(() => {
    const media = matchMedia('(max-width: 760px)');
    const follow = () => setNarrow(media.matches);
    media.addEventListener('change', follow);
    return () => media.removeEventListener('change', follow);
  }, []);
  return isNarrow;
}
