import { auditActions } from '../../domain/audit.js';
import type { AuditPageWire } from '../../protocol/audit-schema.js';
import { Ago, Empty, Failure, Loading, Pager, Panel } from '../components/bits.js';
import { FilterText } from '../components/filter-text.js';
import { Table, type Column } from '../components/table.js';
import { words } from '../format.js';
import { query } from '../http.js';
import { usePages } from '../paged.js';
import { route, setSearch } from '../router.js';
import { useStore } from '../store.js';

type Entry = AuditPageWire['items'][number];

const kinds = {
  key: 'API key',
  session: 'signed in',
  local: 'this machine',
  process: 'the program',
};

const filterNames = ['action', 'subject', 'actor'] as const;
type Filter = Partial<Record<(typeof filterNames)[number], string>>;

/** Who changed what, for admins. */
export function AuditPage() {
  const { search } = useStore(route);
  const filter: Filter = Object.fromEntries(
    filterNames.map((name) => [name, search.get(name)?.trim() ?? '']),
  );
  const { first, items, error, showMore } = usePages<Entry>(
    query('audit', { ...filter, limit: 100 }),
    ({ id }) => String(id),
    { everyMs: 10_000 },
  );
  return (
    <>
      <h1>Audit</h1>
      <Filters filter={filter} />
      <Failure error={error} />
      {first === null ? (
        error === null ? (
          <Loading />
        ) : null
      ) : items.length === 0 && showMore === null ? (
        <Empty
          title={
            Object.values(filter).join('') === '' ? 'Nothing was changed yet.' : 'No entry matches.'
          }
        >
          <p>
            Every change of a queue, limit, key or alert, and every bulk action, is listed here.
          </p>
        </Empty>
      ) : (
        <Panel title="Who changed what, newest first" isFlush>
          <Table columns={columns} rows={items} keyOf={({ id }) => String(id)} />
          <Pager showMore={showMore} />
        </Panel>
      )}
    </>
  );
}

function Filters({ filter }: { filter: Filter }) {
  return (
    <div class="toolbar filters">
      <select
        aria-label="Action"
        value={filter.action ?? ''}
        onChange={(event) => setSearch({ action: event.currentTarget.value })}
      >
        <option value="">Any action</option>
        {auditActions.map((action) => (
          <option key={action} value={action}>
            {words(action.replace('.', ' '))}
          </option>
        ))}
      </select>
      <FilterText
        name="subject"
        label="What was changed, its whole name or id"
        placeholder="What"
        value={filter.subject ?? ''}
      />
      <FilterText
        name="actor"
        label="Who: a person, or the id of a key"
        placeholder="Who"
        value={filter.actor ?? ''}
      />
    </div>
  );
}

const columns: readonly Column<Entry>[] = [
  {
    title: 'When',
    cell: ({ at }) => (
      <span class="nowrap">
        <Ago at={at} />
      </span>
    ),
  },
  {
    title: 'Who',
    cell: ({ actor, details: { on_behalf_of: person } }) => (
      <>
        {typeof person === 'string' ? person : (actor.key_name ?? kinds[actor.kind])}
        <div class="dim">
          {[typeof person === 'string' ? 'by' : '', actor.kind, actor.address ?? '']
            .join(' ')
            .trim()}
        </div>
      </>
    ),
  },
  {
    title: 'What',
    cell: ({ action, subject }) => (
      <>
        {words(action.replace('.', ' '))} <b>{subject ?? ''}</b>
      </>
    ),
  },
  {
    title: 'Changes',
    cell: ({ changes, details }) => (
      <>
        {Object.entries(changes).map(([field, { from, to }]) => (
          <Fact key={field} field={field} value={`${text(from)} → ${text(to)}`} />
        ))}
        {Object.entries(details)
          .filter(([field]) => field !== 'on_behalf_of')
          .map(([field, value]) => (
            <Fact key={field} field={field} value={text(value)} />
          ))}
      </>
    ),
  },
];

function Fact({ field, value }: { field: string; value: string }) {
  return (
    <div>
      <span class="dim">{words(field)}:</span> <span class="mono">{value}</span>
    </div>
  );
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
