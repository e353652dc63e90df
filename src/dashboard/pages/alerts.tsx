import type { AlertListWire } from '../../protocol/alerts-schema.js';
import { Ago, Badge, Empty, Failure, Loading, Panel } from '../components/bits.js';
import { Table, type Column } from '../components/table.js';
import { config } from '../config.js';
import { amount, plural, words } from '../format.js';
import { send } from '../http.js';
import { attempt } from '../notices.js';
import { usePolled } from '../polled.js';

type Alert = AlertListWire['items'][number];

const tones = { firing: 'bad', pending: 'warn', ok: 'good', silenced: 'idle' } as const;
const order: readonly Alert['state'][] = ['firing', 'pending', 'silenced', 'ok'];

/** Of servers that have alerts. */
export function AlertsPage() {
  const alerts = usePolled<AlertListWire>('alerts', { everyMs: 5_000 });
  if (alerts.data === null) {
    return alerts.error === null ? <Loading /> : <Failure error={alerts.error} />;
  }
  const silence = async (name: string, seconds: number) => {
    await attempt(
      `${words(name)} is ${seconds === 0 ? 'no longer silent' : 'silent for an hour'}.`,
      () => send('POST', `alerts/${encodeURIComponent(name)}/silence`, { seconds }),
    );
    alerts.reload();
  };
  const items = alerts.data.items.toSorted(
    (one, other) => order.indexOf(one.state) - order.indexOf(other.state),
  );
  return (
    <>
      <h1>Alerts</h1>
      {alerts.data.evaluated_at === null ? (
        <Empty title="No server evaluates alerts.">
          <p>
            Start one with <code>sluice serve</code>: it does so every 10 seconds, unless{' '}
            <code>--alert-interval-seconds</code> is 0.
          </p>
        </Empty>
      ) : (
        <Panel title={firingText(items)} isFlush>
          <Table
            columns={config.may.admin ? [...columns, silenceColumn(silence)] : columns}
            rows={items}
            keyOf={({ name, labels }) => `${name}${JSON.stringify(labels)}`}
          />
        </Panel>
      )}
    </>
  );
}

function firingText(items: readonly Alert[]): string {
  const firing = items.filter(({ state }) => state === 'firing').length;
  return firing === 0 ? 'No alert fires' : `${plural(firing, 'alert')} firing`;
}

const columns: readonly Column<Alert>[] = [
  { title: 'State', cell: ({ state }) => <Badge tone={tones[state]}>{state}</Badge> },
  {
    title: 'Alert',
    cell: ({ name, labels, summary, silence_note }) => (
      <>
        <b>{words(name)}</b> {Object.values(labels).join(', ')}
        <div class="dim">{summary.replaceAll('`', '')}</div>
        {silence_note === null ? null : <div class="dim">Silenced: {silence_note}</div>}
      </>
    ),
  },
  { title: 'Severity', cell: ({ severity }) => severity },
  {
    title: 'Value',
    cell: ({ off, value, threshold }) => (
      <span class="nowrap">
        {off ? 'off' : value === null ? '–' : amount(value)} of {amount(threshold)}
      </span>
    ),
  },
  {
    title: 'Since',
    cell: ({ since }) => (
      <span class="nowrap">
        <Ago at={since} />
      </span>
    ),
  },
];

function silenceColumn(onSilence: (name: string, seconds: number) => Promise<void>): Column<Alert> {
  const button = (text: string, name: string, seconds: number) => (
    <button type="button" onClick={() => void onSilence(name, seconds)}>
      {text}
    </button>
  );
  return {
    title: 'Action',
    cell: ({ name, state, silenced_until }) => {
      if (silenced_until !== null) return button('End the silence', name, 0);
      return state === 'firing' ? button('Silence for an hour', name, 3_600) : null;
    },
  };
}
