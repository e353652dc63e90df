import { useState } from 'preact/hooks';
import { limitText } from '../../domain/limit-text.js';
import type { LimitWire } from '../../protocol/queues-schema.js';
import { Badge, Failure, Panel } from '../components/bits.js';
import { useConfirm } from '../components/dialog.js';
import { FormDialog } from '../components/form-dialog.js';
import { config } from '../config.js';
import { send } from '../http.js';
import { attempt, tell } from '../notices.js';
import { usePolled } from '../polled.js';

/** Limits that several queues share: one account at a service, say. */
export function SharedLimits() {
  const limits = usePolled<{ items: readonly LimitWire[] }>('limits', { everyMs: 10_000 });
  const [edited, setEdited] = useState<LimitWire | 'new' | null>(null);
  const [confirm, ask] = useConfirm();
  const items = limits.data?.items ?? [];
  if (limits.data === null) return <Failure error={limits.error} />;
  const remove = ({ name }: LimitWire) =>
    ask({
      title: `Delete the limit ${name}?`,
      text: <p>It is refused while a queue uses it.</p>,
      name,
      button: 'Delete it',
      action: async () => {
        await attempt(`${name} is deleted.`, () => send('DELETE', pathOf(name)));
        limits.reload();
      },
    });
  return (
    <Panel
      title="Quotas that several queues use"
      actions={
        config.may.admin ? (
          <button type="button" onClick={() => setEdited('new')}>
            New shared limit …
          </button>
        ) : null
      }
      isFlush
    >
      <table class="cards">
        <tbody>
          {items.length === 0 ? (
            <tr>
              <td class="dim">None. Queues that call one account can share its quota.</td>
            </tr>
          ) : null}
          {items.map((limit) => (
            <tr key={limit.name}>
              <td data-label="Limit">
                <b>{limit.name}</b>
              </td>
              <td data-label="Allows">
                <span>
                  {limitText({ ...limit, perSeconds: limit.per_seconds })}{' '}
                  {limit.in_force ? null : <Badge tone="bad">not in force</Badge>}
                </span>
              </td>
              <td data-label="">
                {config.may.admin ? (
                  <span class="actions">
                    <button type="button" onClick={() => setEdited(limit)}>
                      Edit …
                    </button>
                    <button type="button" onClick={() => remove(limit)}>
                      Delete …
                    </button>
                  </span>
                ) : null}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {edited === null ? null : (
        <LimitDialog
          limit={edited === 'new' ? null : edited}
          onClose={() => {
            setEdited(null);
            limits.reload();
          }}
        />
      )}
      {confirm}
    </Panel>
  );
}

function pathOf(name: string): string {
  return `limits/${encodeURIComponent(name)}`;
}

function LimitDialog({ limit, onClose }: { limit: LimitWire | null; onClose: () => void }) {
  const [name, setName] = useState(limit?.name ?? '');
  const [rate, setRate] = useState(String(limit?.rate ?? ''));
  const [unit, setUnit] = useState(limit?.unit ?? 'requests');
  const [seconds, setSeconds] = useState(String(limit?.per_seconds ?? 60));
  const save = async () => {
    const burst = limit?.burst ?? null;
    await send('PUT', pathOf(name), {
      unit,
      rate: Number(rate),
      per_seconds: Number(seconds),
      burst,
    });
    tell('good', `${name} counts from now on.`);
    onClose();
  };
  return (
    <FormDialog
      title={limit === null ? 'New shared limit' : `Limit ${limit.name}`}
      onClose={onClose}
      button="Save"
      submit={save}
    >
      {limit === null ? (
        <TextField id="limit-name" label="Name" value={name} onChange={setName} />
      ) : null}
      <div class="fields">
        <TextField id="limit-rate" label="At most" value={rate} onChange={setRate} />
        <TextField id="limit-unit" label="Unit" value={unit} onChange={setUnit} />
        <TextField
          id="limit-seconds"
          label="In so many seconds"
          value={seconds}
          onChange={setSeconds}
        />
      </div>
    </FormDialog>
  );
}

function TextField({
  id,
  label,
  value,
  onChange,
}: {
  id: string;
  label: string;
  value: string;
  onChange: (value: string) => void;
}) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        required
        value={value}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    </div>
  );
}
