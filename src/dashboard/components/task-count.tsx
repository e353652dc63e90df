import { useEffect, useRef, useState } from 'preact/hooks';
import type { TaskCountWire } from '../../protocol/bulk-schema.js';
import { clock, count, plural } from '../format.js';
import { explain } from '../http.js';
import { stepOn } from '../steps.js';
import { countCall } from '../task-bulk.js';
import type { TaskSearch } from '../task-search.js';

interface Total {
  readonly count: number;
  readonly scanned: number;
  readonly searchedBackTo: string | null;
  readonly cursor: string | null;
}

const none: Total = { count: 0, scanned: 0, searchedBackTo: null, cursor: null };

/** How many tasks match, when somebody wants to know: it takes a call for each 10,000 tasks. */
export function Count({ filter }: { filter: TaskSearch }) {
  const [total, setTotal] = useState<Total | null>(null);
  const [isCounting, setCounting] = useState(false);
  const [fault, setFault] = useState<string | null>(null);
  const stopping = useRef(new AbortController());
  useEffect(() => () => stopping.current.abort(), []);

  const countOn = async () => {
    const stop = new AbortController();
    stopping.current = stop;
    setCounting(true);
    setFault(null);
    let sum = total?.cursor === null || total === null ? none : total;
    setTotal(sum);
    try {
      await stepOn(sum.cursor, countCall(filter), {
        signal: stop.signal,
        onAnswer: (answer) => {
          sum = added(sum, answer);
          setTotal(sum);
          return true;
        },
      });
    } catch (error) {
      if (!stop.signal.aborted) setFault(explain(error));
    }
    setCounting(false);
  };

  return (
    <div class="toolbar">
      {isCounting ? (
        <button type="button" onClick={() => stopping.current.abort()}>
          Stop counting
        </button>
      ) : (
        <button type="button" onClick={() => void countOn()}>
          {total === null
            ? 'Count the matches'
            : total.cursor === null
              ? 'Count again'
              : 'Count on'}
        </button>
      )}
      {isCounting ? <progress aria-label="Counting" /> : null}
      <span class="dim" role="status">
        {total === null ? '' : totalText(total)}
      </span>
      {fault === null ? null : (
        <span class="failure" role="alert">
          {fault}
        </span>
      )}
    </div>
  );
}

function added(sum: Total, answer: TaskCountWire): Total {
  return {
    count: sum.count + answer.count,
    scanned: sum.scanned + answer.scanned,
    searchedBackTo: answer.searched_back_to,
    cursor: answer.next_cursor,
  };
}

function totalText({ count: matches, scanned, searchedBackTo }: Total): string {
  const found = `${plural(matches, 'match', 'matches')} among`;
  return searchedBackTo === null
    ? `${found} all ${plural(scanned, 'task')}.`
    : `${found} the newest ${count(scanned)} tasks, back to ${clock(searchedBackTo)}.`;
}
