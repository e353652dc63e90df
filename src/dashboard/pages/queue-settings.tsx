import { useState } from 'preact/hooks';
import type { QueueLimitWire, QueueWire } from '../../protocol/queues-schema.js';
import { FormDialog } from '../components/form-dialog.js';
import { send } from '../http.js';
import { tell } from '../notices.js';

/** As it is typed: empty is none. */
interface LimitText {
  readonly unit: string;
  readonly rate: string;
  readonly perSeconds: string;
  readonly burst: string;
  /** The name of a shared limit, instead of the others. */
  readonly use: string | null;
}

const ages = {
  low_to_medium_seconds: 'Low becomes medium after, seconds',
  low_to_high_seconds: 'Low becomes high after, seconds',
  medium_to_high_seconds: 'Medium becomes high after, seconds',
} as const;
type Age = keyof typeof ages;

const numbers = {
  max_concurrency: ['Running at once', 'empty: any number'],
  max_active: ['Not ended at most', 'empty: any number; further ones are refused'],
  max_ready: ['Ready for each lane and priority', 'entries in the ready queue'],
  max_lanes: ['Lanes', 'combinations of task type and capabilities'],
} as const;
type NumberName = keyof typeof numbers;

/** All settings of a queue. Sent as one change, which counts for the very next task. */
export function QueueSettings({
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
  const [limits, setLimits] = useState<readonly LimitText[]>(() => queue.limits.map(limitToText));
  const [values, setValues] = useState(() => numbersOf(queue));
  const [hasAgeing, setHasAgeing] = useState(queue.ageing !== null);
  const [ageing, setAgeing] = useState(() => ageingOf(queue));

  const save = async () => {
    const body = {
      limits: limits.map(limitFromText),
      max_concurrency: optionalNumber(values.max_concurrency),
      max_active: optionalNumber(values.max_active),
      max_ready: requiredNumber(values.max_ready),
      max_lanes: requiredNumber(values.max_lanes),
      ageing: hasAgeing ? ageingFromText(ageing) : null,
    };
    await send('PATCH', path, body);
    tell('good', `The settings of ${queue.name} count from now on.`);
    onClose();
    onDone();
  };

  return (
    <FormDialog
      title={`Settings of ${queue.name}`}
      onClose={onClose}
      isWide
      button="Save"
      submit={save}
    >
      <Limits limits={limits} onChange={setLimits} />
      <div class="fields">
        {(Object.keys(numbers) as NumberName[]).map((name) => (
          <NumberField
            key={name}
            id={`setting-${name}`}
            label={numbers[name][0]}
            hint={numbers[name][1]}
            value={values[name]}
            onChange={(value) => setValues({ ...values, [name]: value })}
          />
        ))}
      </div>
      <label class="check">
        <input
          type="checkbox"
          checked={hasAgeing}
          onChange={(event) => setHasAgeing(event.currentTarget.checked)}
        />
        Tasks become more urgent with age
      </label>
      {hasAgeing ? (
        <div class="fields">
          {(Object.keys(ages) as Age[]).map((name) => (
            <NumberField
              key={name}
              id={`setting-${name}`}
              label={ages[name]}
              hint="empty: never"
              value={ageing[name]}
              onChange={(value) => setAgeing({ ...ageing, [name]: value })}
            />
          ))}
        </div>
      ) : null}
    </FormDialog>
  );
}

function Limits({
  limits,
  onChange,
}: {
  limits: readonly LimitText[];
  onChange: (limits: readonly LimitText[]) => void;
}) {
  const change = (index: number, changed: Partial<LimitText>) =>
    onChange(limits.map((limit, at) => (at === index ? { ...limit, ...changed } : limit)));
  const remove = (index: number) => onChange(limits.filter((_, at) => at !== index));
  return (
    <fieldset class="limits">
      <legend>Limits: at most so many in any such time</legend>
      {limits.map((limit, index) => (
        <div key={index} class="one">
          {limit.use === null ? (
            <RateFields
              limit={limit}
              number={index + 1}
              onChange={(changed) => change(index, changed)}
            />
          ) : (
            <input
              aria-label={`Limit ${index + 1}: name of the shared limit`}
              value={limit.use}
              onInput={(event) => change(index, { use: event.currentTarget.value })}
            />
          )}
          <button
            type="button"
            class="plain"
            aria-label={`Remove limit ${index + 1}`}
            onClick={() => remove(index)}
          >
            ✕
          </button>
        </div>
      ))}
      <div class="actions">
        <button
          type="button"
          onClick={() =>
            onChange([
              ...limits,
              { unit: 'requests', rate: '', perSeconds: '60', burst: '', use: null },
            ])
          }
        >
          Add a limit
        </button>
        <button
          type="button"
          onClick={() =>
            onChange([...limits, { unit: '', rate: '', perSeconds: '', burst: '', use: '' }])
          }
        >
          Share a limit
        </button>
      </div>
    </fieldset>
  );
}

function RateFields({
  limit,
  number,
  onChange,
}: {
  limit: LimitText;
  number: number;
  onChange: (changed: Partial<LimitText>) => void;
}) {
  return (
    <>
      <input
        aria-label={`Limit ${number}: how many`}
        inputMode="numeric"
        placeholder="500"
        value={limit.rate}
        onInput={(event) => onChange({ rate: event.currentTarget.value })}
      />
      <input
        aria-label={`Limit ${number}: unit`}
        placeholder="requests"
        value={limit.unit}
        onInput={(event) => onChange({ unit: event.currentTarget.value })}
      />
      in
      <input
        aria-label={`Limit ${number}: seconds`}
        inputMode="numeric"
        value={limit.perSeconds}
        onInput={(event) => onChange({ perSeconds: event.currentTarget.value })}
      />
      s, burst
      <input
        aria-label={`Limit ${number}: burst`}
        inputMode="numeric"
        placeholder="none"
        value={limit.burst}
        onInput={(event) => onChange({ burst: event.currentTarget.value })}
      />
    </>
  );
}

function NumberField({
  id,
  label,
  hint,
  value,
  onChange,
}: {
  id: string;
  label: string;
  hint: string;
  value: string;
  onChange: (value: string) => void;
}) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        inputMode="numeric"
        value={value}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      <span class="hint">{hint}</span>
    </div>
  );
}

function limitToText(limit: QueueLimitWire): LimitText {
  if ('use' in limit) return { unit: '', rate: '', perSeconds: '', burst: '', use: limit.use };
  return {
    unit: limit.unit,
    rate: String(limit.rate),
    perSeconds: String(limit.per_seconds),
    burst: textOf(limit.burst),
    use: null,
  };
}

function limitFromText({ unit, rate, perSeconds, burst, use }: LimitText): QueueLimitWire {
  if (use !== null) return { use: use.trim() };
  return {
    unit: unit.trim(),
    rate: requiredNumber(rate),
    per_seconds: requiredNumber(perSeconds),
    burst: optionalNumber(burst),
  };
}

function numbersOf(queue: QueueWire): Record<NumberName, string> {
  return {
    max_concurrency: textOf(queue.max_concurrency),
    max_active: textOf(queue.max_active),
    max_ready: textOf(queue.max_ready),
    max_lanes: textOf(queue.max_lanes),
  };
}

function ageingOf({ ageing }: QueueWire): Record<Age, string> {
  return {
    low_to_medium_seconds: textOf(ageing?.low_to_medium_seconds),
    low_to_high_seconds: textOf(ageing?.low_to_high_seconds),
    medium_to_high_seconds: textOf(ageing?.medium_to_high_seconds),
  };
}

function ageingFromText(ageing: Readonly<Record<Age, string>>) {
  return {
    low_to_medium_seconds: optionalNumber(ageing.low_to_medium_seconds),
    low_to_high_seconds: optionalNumber(ageing.low_to_high_seconds),
    medium_to_high_seconds: optionalNumber(ageing.medium_to_high_seconds),
  };
}

function textOf(value: number | null | undefined): string {
  return value === null || value === undefined ? '' : String(value);
}

function optionalNumber(text: string): number | null {
  return text.trim() === '' ? null : requiredNumber(text);
}

function requiredNumber(text: string): number {
  const value = Number(text.trim().replaceAll(',', ''));
  if (text.trim() === '' || !Number.isFinite(value)) throw new Error(`"${text}" is not a number.`);
  return value;
}
