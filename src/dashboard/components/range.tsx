import { setSearch } from '../router.js';

export const ranges = { hour: 3_600, day: 86_400, week: 7 * 86_400 } as const;
export type Range = keyof typeof ranges;

export function rangeOf(text: string | null): Range {
  return text === 'day' || text === 'week' ? text : 'hour';
}

export function RangeSwitch({ range }: { range: Range }) {
  return (
    <div class="switch" role="group" aria-label="Time span">
      {(Object.keys(ranges) as Range[]).map((each) => (
        <button
          key={each}
          type="button"
          aria-pressed={each === range}
          onClick={() => setSearch({ range: each === 'hour' ? '' : each })}
        >
          {each}
        </button>
      ))}
    </div>
  );
}
