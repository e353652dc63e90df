import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

const spareRows = 8;

/**
 * The rows of a long list that can be seen, and some around them: 10,000 rows cost as much as 40. Scrolls with the page.
 * On a phone a row is a card, of another height.
 */
export function VirtualRows<Row>({
  rows,
  rowHeight,
  render,
  label,
  head,
  onShown,
}: {
  rows: readonly Row[];
  rowHeight: number;
  render: (row: Row) => ComponentChildren;
  label: string;
  head: ComponentChildren;
  onShown?: (rows: readonly Row[]) => void;
}) {
  const body = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState({ from: 0, to: 40 });

  useEffect(() => {
    const look = () => {
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const from = Math.max(0, Math.floor(-top / rowHeight) - spareRows);
      const to = from + Math.ceil(window.innerHeight / rowHeight) + 2 * spareRows;
      setRange((before) => (before.from === from && before.to === to ? before : { from, to }));
    };
    look();
    window.addEventListener('scroll', look, { passive: true });
    window.addEventListener('resize', look);
    return () => {
      window.removeEventListener('scroll', look);
      window.removeEventListener('resize', look);
    };
  }, [rowHeight]);

  const from = Math.min(range.from, Math.max(0, rows.length - 1));
  const shown = rows.slice(from, range.to);
  const shownRows = useRef(shown);
  shownRows.current = shown;
  useEffect(() => onShown?.(shownRows.current), [from, range.to, rows, onShown]);

  return (
    <div class="grid" role="table" aria-label={label} aria-rowcount={rows.length}>
      {head}
      <div role="rowgroup" ref={body} style={{ height: `${rows.length * rowHeight}px` }}>
        <div role="presentation" style={{ height: `${from * rowHeight}px` }} />
        {shown.map((row) => render(row))}
      </div>
    </div>
  );
}
