import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { clock, count, plural } from '../format.js';
import { explain } from '../http.js';
import { stepOn, type Step } from '../steps.js';
import { Dialog } from './dialog.js';

export interface Counted extends Step {
  readonly count: number;
  /** Down to when tasks were looked at so far. */
  readonly searched_back_to: string | null;
}

export interface Done extends Step {
  readonly done: number;
}

/** An action on all tasks of a filter, in calls that are bounded each. */
export interface Bulk {
  readonly title: string;
  /** Which tasks, and what happens to them. */
  readonly text: ComponentChildren;
  /** What they are afterwards: `cancelled`. */
  readonly result: string;
  readonly button: string;
  /** Destructive: it is typed, with the number, to confirm. */
  readonly typed?: string;
  readonly choice?: { readonly label: string; readonly options: readonly string[] };
  readonly count: (cursor: string | null) => Promise<Counted>;
  readonly act: (cursor: string | null, chosen: string) => Promise<Done>;
  readonly onDone: () => void;
}

type Phase = 'counting' | 'ready' | 'acting' | 'stopping' | 'over';

interface Progress {
  readonly phase: Phase;
  readonly total: number;
  /** The count was stopped: there may be more. */
  readonly isAtLeast: boolean;
  readonly searchedBackTo: string | null;
  readonly done: number;
  /** Where the action goes on; null: at its begin, or it came to the end. */
  readonly cursor: string | null;
  readonly fault: string | null;
}

const beginning: Progress = {
  phase: 'counting',
  total: 0,
  isAtLeast: false,
  searchedBackTo: null,
  done: 0,
  cursor: null,
  fault: null,
};

/** Counts when it is opened, and acts when it is told to; both can be stopped. */
function useBulkProgress(bulk: Bulk) {
  const [progress, setProgress] = useState(beginning);
  const stopping = useRef(new AbortController());
  const change = (changes: Partial<Progress>) => setProgress((last) => ({ ...last, ...changes }));

  const countAll = async () => {
    const { signal } = stopping.current;
    let total = 0;
    try {
      const isWhole = await stepOn(null, bulk.count, {
        signal,
        onAnswer: (answer) => {
          total += answer.count;
          change({ total, searchedBackTo: answer.searched_back_to });
          return true;
        },
      });
      change({ phase: 'ready', isAtLeast: !isWhole });
    } catch (error) {
      change({ phase: 'ready', isAtLeast: true, fault: explain(error) });
    }
  };

  const act = async (chosen: string) => {
    stopping.current = new AbortController();
    let { done, cursor } = progress;
    change({ phase: 'acting', fault: null });
    const step = (from: string | null) => bulk.act(from, chosen);
    try {
      await stepOn(cursor, step, {
        onAnswer: (answer) => {
          done += answer.done;
          cursor = answer.next_cursor;
          change({ done, cursor });
          return !stopping.current.signal.aborted;
        },
      });
      change({ phase: 'over', cursor });
    } catch (error) {
      change({ phase: 'over', cursor, fault: explain(error) });
    }
    bulk.onDone();
  };

  const stop = () => {
    stopping.current.abort();
    setProgress((last) => (last.phase === 'acting' ? { ...last, phase: 'stopping' } : last));
  };

  useEffect(() => {
    void countAll();
    return () => stopping.current.abort();
  }, []);
  return { progress, act, stop };
}

function BulkDialog({ bulk, onClose }: { bulk: Bulk; onClose: () => void }) {
  const { progress, act, stop } = useBulkProgress(bulk);
  const [typed, setTyped] = useState('');
  const [chosen, setChosen] = useState(bulk.choice?.options[0] ?? '');
  const { phase, total } = progress;
  const phrase = bulk.typed === undefined ? null : `${bulk.typed} ${count(total)}`;
  const mayBegin =
    phase === 'ready' &&
    (total > 0 || progress.isAtLeast) &&
    (phrase === null || typed.trim() === phrase);
  const isActing = phase === 'acting' || phase === 'stopping';
  const canGoOn = phase === 'over' && (progress.cursor !== null || progress.fault !== null);
  return (
    // What is under way is not forgotten: closing stops it first, and shows what was done.
    <Dialog title={bulk.title} onClose={isActing ? stop : onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (mayBegin) void act(chosen);
        }}
      >
        <div class="text">{bulk.text}</div>
        <div role="status" class="text">
          <BulkProgress bulk={bulk} progress={progress} />
        </div>
        {progress.fault === null ? null : (
          <p class="failure" role="alert">
            {progress.fault}
          </p>
        )}
        {phase === 'ready' && bulk.choice !== undefined ? (
          <Choice choice={bulk.choice} chosen={chosen} onChoose={setChosen} />
        ) : null}
        {phase === 'ready' && phrase !== null && total > 0 ? (
          <Phrase phrase={phrase} typed={typed} onType={setTyped} />
        ) : null}
        <footer>
          {phase === 'counting' ? (
            <button type="button" onClick={stop}>
              Stop counting
            </button>
          ) : null}
          {isActing ? (
            <button type="button" disabled={phase === 'stopping'} onClick={stop}>
              Stop
            </button>
          ) : (
            <button type="button" onClick={onClose}>
              Close
            </button>
          )}
          {canGoOn ? (
            <button type="button" class="main" onClick={() => void act(chosen)}>
              Go on
            </button>
          ) : null}
          {phase === 'counting' || phase === 'ready' ? (
            <button type="submit" class={phrase === null ? 'main' : 'danger'} disabled={!mayBegin}>
              {bulk.button}
              {phase === 'ready' && total > 0 ? ` ${count(total)}` : ''}
            </button>
          ) : null}
        </footer>
      </form>
    </Dialog>
  );
}

function BulkProgress({ bulk, progress }: { bulk: Bulk; progress: Progress }) {
  const { phase, total, isAtLeast, searchedBackTo, done } = progress;
  const about = `${isAtLeast ? 'At least ' : ''}${plural(total, 'task')}`;
  const soFar = `${count(done)} of ${isAtLeast ? 'at least ' : ''}${count(total)}`;
  switch (phase) {
    case 'counting':
      return (
        <>
          <p>
            Counting: {count(total)} so far
            {searchedBackTo === null ? '' : `, back to ${clock(searchedBackTo)}`} …
          </p>
          <progress aria-label="Counting" />
        </>
      );
    case 'ready':
      return (
        <p>
          {about}
          {isAtLeast && searchedBackTo !== null
            ? `: counted back to ${clock(searchedBackTo)}. The action takes the older ones as well.`
            : '.'}
        </p>
      );
    case 'acting':
    case 'stopping':
      return (
        <>
          <p>
            {soFar} {bulk.result} …{phase === 'stopping' ? ' Stopping after this step.' : ''}
          </p>
          <progress aria-label={bulk.title} max={Math.max(total, done, 1)} value={done} />
        </>
      );
    case 'over':
      return <p>{overText(bulk, progress, soFar)}</p>;
  }
}

function overText(
  { result }: Bulk,
  { done, total, isAtLeast, cursor, fault }: Progress,
  soFar: string,
): string {
  if (fault !== null) return `${soFar} ${result} before this happened:`;
  if (cursor !== null) return `Stopped: ${soFar} ${result}. The others are as they were.`;
  const left = isAtLeast ? 0 : Math.max(0, total - done);
  const others = left === 0 ? '' : ` ${count(left)} had changed before it was their turn.`;
  return `${plural(done, 'task')} ${result}.${others}`;
}

function Choice({
  choice,
  chosen,
  onChoose,
}: {
  choice: NonNullable<Bulk['choice']>;
  chosen: string;
  onChoose: (option: string) => void;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{choice.label}</label>
      <select id={id} value={chosen} onChange={(event) => onChoose(event.currentTarget.value)}>
        {choice.options.map((option) => (
          <option key={option} value={option}>
            {option}
          </option>
        ))}
      </select>
    </div>
  );
}

function Phrase({
  phrase,
  typed,
  onType,
}: {
  phrase: string;
  typed: string;
  onType: (text: string) => void;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>
        Type <b class="mono">{phrase}</b> to confirm
      </label>
      <input
        id={id}
        value={typed}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => onType(event.currentTarget.value)}
      />
    </div>
  );
}

/** The dialog that is asked for, and how to ask. */
export function useBulk(): [ComponentChildren, (bulk: Bulk) => void] {
  const [bulk, setBulk] = useState<Bulk | null>(null);
  const shown = bulk === null ? null : <BulkDialog bulk={bulk} onClose={() => setBulk(null)} />;
  return [shown, setBulk];
}
