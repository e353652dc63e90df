import { useState } from 'preact/hooks';
import { scopes, type Scope } from '../../domain/scopes.js';
import type {
  CreatedKeyWire,
  KeyPageWire,
  KeyWire,
  SessionListWire,
} from '../../protocol/keys-schema.js';
import { Ago, Badge, Empty, Failure, Loading, Panel } from '../components/bits.js';
import { Dialog, useConfirm } from '../components/dialog.js';
import { Table, type Column } from '../components/table.js';
import { FormDialog } from '../components/form-dialog.js';
import { config } from '../config.js';
import { ago } from '../format.js';
import { send } from '../http.js';
import { attempt } from '../notices.js';
import { usePolled } from '../polled.js';

export function KeysPage() {
  const keys = usePolled<KeyPageWire>(config.may.admin ? 'keys?limit=1000' : null, {
    everyMs: 10_000,
  });
  const [confirm, ask] = useConfirm();
  const [isCreating, setCreating] = useState(false);
  const [sessionsOf, setSessionsOf] = useState<KeyWire | null>(null);
  if (!config.may.admin) return <Empty title="API keys are for those with the scope admin." />;
  if (keys.data === null) return keys.error === null ? <Loading /> : <Failure error={keys.error} />;
  const { items } = keys.data;
  const revoke = ({ id, name }: KeyWire) =>
    ask({
      title: `Revoke ${name}?`,
      text: (
        <p>
          Whoever uses it is refused within a second, and its sessions end. It can&apos;t be undone.
        </p>
      ),
      name,
      button: 'Revoke it',
      action: async () => {
        await attempt(`${name} is revoked.`, () =>
          send('DELETE', `keys/${encodeURIComponent(id)}`),
        );
        keys.reload();
      },
    });
  return (
    <>
      <div class="between">
        <h1>API keys</h1>
        <button type="button" class="main" onClick={() => setCreating(true)}>
          New key …
        </button>
      </div>
      {items.length === 0 ? (
        <Empty title="There is no key: anybody on this machine may call, and nobody else.">
          <p>The first key closes the server to all who have none, this page included.</p>
        </Empty>
      ) : (
        <Panel title="Keys" isFlush>
          <Table
            columns={[...columns, actionColumn(setSessionsOf, revoke)]}
            rows={items}
            keyOf={({ id }) => id}
          />
        </Panel>
      )}
      {isCreating ? (
        <NewKey
          isFirst={items.length === 0}
          onClose={() => {
            setCreating(false);
            keys.reload();
          }}
        />
      ) : null}
      {sessionsOf === null ? null : (
        <Sessions apiKey={sessionsOf} onClose={() => setSessionsOf(null)} />
      )}
      {confirm}
    </>
  );
}

const columns: readonly Column<KeyWire>[] = [
  {
    title: 'Name',
    cell: ({ id, name }) => (
      <>
        <b>{name}</b> <span class="mono dim">{id}</span>
      </>
    ),
  },
  { title: 'May', cell: ({ scopes: granted }) => granted.join(', ') },
  {
    title: 'Reaches',
    cell: ({ queues, own_tasks }) =>
      `${queues === null ? 'every queue' : queues.join(', ')}${own_tasks ? ', own tasks' : ''}`,
  },
  { title: 'Made', cell: ({ created_at }) => <Ago at={created_at} /> },
  { title: 'Last used', cell: ({ last_used_at }) => <Ago at={last_used_at} /> },
  { title: 'State', cell: (key) => <KeyState apiKey={key} /> },
];

function actionColumn(
  onSessions: (key: KeyWire) => void,
  onRevoke: (key: KeyWire) => void,
): Column<KeyWire> {
  return {
    title: 'Actions',
    cell: (key) =>
      isGood(key) ? (
        <span class="actions">
          <button type="button" onClick={() => onSessions(key)}>
            Sessions
          </button>
          <button type="button" onClick={() => onRevoke(key)}>
            Revoke …
          </button>
        </span>
      ) : null,
  };
}

function isGood({ revoked_at, expires_at }: KeyWire): boolean {
  return revoked_at === null && (expires_at === null || Date.parse(expires_at) > Date.now());
}

function KeyState({ apiKey }: { apiKey: KeyWire }) {
  const { revoked_at, expires_at } = apiKey;
  if (revoked_at !== null) return <Badge tone="bad">revoked {ago(revoked_at)}</Badge>;
  if (expires_at === null) return <Badge tone="good">good</Badge>;
  const isOver = Date.parse(expires_at) <= Date.now();
  return (
    <Badge tone={isOver ? 'bad' : 'good'}>
      {isOver ? 'expired' : `expires ${ago(expires_at)}`}
    </Badge>
  );
}

const lives: readonly (readonly [string, number | null])[] = [
  ['until it is revoked', null],
  ['a day', 86_400],
  ['30 days', 30 * 86_400],
  ['90 days', 90 * 86_400],
  ['a year', 365 * 86_400],
];

function NewKey({ isFirst, onClose }: { isFirst: boolean; onClose: () => void }) {
  const [name, setName] = useState('');
  const [chosen, setChosen] = useState<readonly Scope[]>(isFirst ? ['admin'] : ['read']);
  const [queues, setQueues] = useState('');
  const [life, setLife] = useState<number | null>(null);
  const [created, setCreated] = useState<CreatedKeyWire | null>(null);
  const create = async () => {
    const patterns = queues.split(/[\s,]+/).filter((pattern) => pattern !== '');
    const body = {
      name,
      scopes: chosen,
      ...(life === null ? {} : { expires_in_seconds: life }),
      ...(patterns.length === 0 ? {} : { queues: patterns }),
    };
    setCreated(await send<CreatedKeyWire>('POST', 'keys', body));
  };
  if (created !== null) return <ToldOnce created={created} onClose={onClose} />;
  return (
    <FormDialog title="New API key" onClose={onClose} button="Make it" submit={create}>
      {isFirst ? (
        <p>
          From the first key on every call needs one. Keep it: you need it to sign in here again.
        </p>
      ) : null}
      <div class="field">
        <label for="key-name">Name</label>
        <input
          id="key-name"
          required
          maxLength={100}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </div>
      <fieldset>
        <legend>It may</legend>
        {scopes.map((scope) => (
          <label key={scope} class="check">
            <input
              type="checkbox"
              checked={chosen.includes(scope)}
              onChange={(event) =>
                setChosen(
                  event.currentTarget.checked
                    ? [...chosen, scope]
                    : chosen.filter((each) => each !== scope),
                )
              }
            />
            {scope}
          </label>
        ))}
      </fieldset>
      <div class="field">
        <label for="key-queues">Only these queues</label>
        <input
          id="key-queues"
          placeholder="every queue"
          value={queues}
          onInput={(event) => setQueues(event.currentTarget.value)}
        />
        <span class="hint">names, or how they begin, followed by *</span>
      </div>
      <div class="field">
        <label for="key-life">Good for</label>
        <select
          id="key-life"
          onChange={(event) => setLife(lives[event.currentTarget.selectedIndex]?.[1] ?? null)}
        >
          {lives.map(([text]) => (
            <option key={text}>{text}</option>
          ))}
        </select>
      </div>
    </FormDialog>
  );
}

function ToldOnce({ created, onClose }: { created: CreatedKeyWire; onClose: () => void }) {
  return (
    <Dialog title={`The key ${created.name}`} onClose={onClose}>
      <p>Copy it now: it is shown this once.</p>
      <p class="secret mono">{created.key}</p>
      <footer>
        <button
          type="button"
          class="main"
          onClick={() => void navigator.clipboard.writeText(created.key)}
        >
          Copy
        </button>
        <button type="button" onClick={onClose}>
          Done
        </button>
      </footer>
    </Dialog>
  );
}

function Sessions({ apiKey, onClose }: { apiKey: KeyWire; onClose: () => void }) {
  const path = `keys/${encodeURIComponent(apiKey.id)}/sessions`;
  const sessions = usePolled<SessionListWire>(path, { everyMs: null });
  const end = async (id: string) => {
    await attempt('The session is over.', () =>
      send('DELETE', `${path}/${encodeURIComponent(id)}`),
    );
    sessions.reload();
  };
  const open = sessions.data?.items.filter(({ ended_at }) => ended_at === null) ?? [];
  return (
    <Dialog title={`Who is signed in with ${apiKey.name}`} onClose={onClose}>
      <Failure error={sessions.error} />
      {sessions.data !== null && open.length === 0 ? <p class="dim">Nobody.</p> : null}
      {open.length === 0 ? null : (
        <table>
          <thead>
            <tr>
              <th scope="col">From</th>
              <th scope="col">Since</th>
              <th scope="col">Last used</th>
              <th scope="col">Action</th>
            </tr>
          </thead>
          <tbody>
            {open.map(({ id, signed_in_from, created_at, last_used_at }) => (
              <tr key={id}>
                <td>{signed_in_from ?? 'not kept'}</td>
                <td>
                  <Ago at={created_at} />
                </td>
                <td>
                  <Ago at={last_used_at} />
                </td>
                <td>
                  <button type="button" onClick={() => void end(id)}>
                    End
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Dialog>
  );
}
