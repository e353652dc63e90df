import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import { amount, compact, dateTime, duration, percent } from '../format.js';
import { useStore } from '../store.js';
import { theme } from '../theme.js';
import { useDarkness } from './darkness.js';

export interface Line {
  readonly label: string;
  readonly values: readonly (number | null)[];
  /** A custom property of the style sheet. */
  readonly color: string;
  readonly isFilled?: boolean;
  readonly isDashed?: boolean;
}

export interface ChartProps {
  /** What a screen reader says, with the last values. */
  readonly title: string;
  /** Unix seconds. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly unit: 'count' | 'seconds' | 'share';
  readonly height?: number;
  /** Each line stands on the one before; the legend says the values of each by itself. */
  readonly isStacked?: boolean;
}

const texts = {
  count: { axis: compact, value: amount },
  seconds: { axis: duration, value: duration },
  share: { axis: percent, value: percent },
};

export function Chart({ title, times, lines, unit, height = 170, isStacked = false }: ChartProps) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const chosen = useStore(theme);
  const isDark = useDarkness();
  const shape = lines.map(({ label, color }) => `${label} ${color}`).join();
  const drawn = isStacked ? stacked(lines) : lines.map(({ values }) => values);
  const data = [times, ...drawn] as unknown as UPlot.AlignedData;
  const latest = useRef({ data, lines });
  latest.current = { data, lines };

  useEffect(() => {
    const parent = frame.current;
    if (parent === null) return undefined;
    const made = new UPlot(
      {
        ...optionsOf(unit, parent.clientWidth, height),
        ...(isStacked ? { bands: bandsOf(lines) } : {}),
        series: seriesOf(lines, unit, (line, at) => latest.current.lines[line]?.values[at] ?? null),
      },
      latest.current.data,
      parent,
    );
    plot.current = made;
    const resizing = new ResizeObserver(() => {
      if (parent.clientWidth > 0) made.setSize({ width: parent.clientWidth, height });
    });
    resizing.observe(parent);
    return () => {
      resizing.disconnect();
      made.destroy();
      plot.current = null;
    };
    // The rest of it comes through setData.
  }, [shape, unit, height, isStacked, chosen, isDark]);

  useEffect(() => {
    plot.current?.setData(latest.current.data);
    if (plot.current !== null) tellLast(plot.current);
  }, [times, lines]);

  const summary = lines
    .map(({ label, values }) => {
      const last = values.findLast((value) => value !== null);
      return `${label}: ${last === undefined ? 'none' : texts[unit].value(last)}`;
    })
    .join(', ');
  return <div class="chart" role="img" aria-label={`${title}. Last: ${summary}`} ref={frame} />;
}

function optionsOf(
  unit: ChartProps['unit'],
  width: number,
  height: number,
): Omit<UPlot.Options, 'series'> {
  const axis = {
    stroke: color('--dim'),
    grid: { stroke: color('--grid'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui, sans-serif',
  };
  const { axis: axisText } = texts[unit];
  return {
    width,
    height,
    padding: [8, 16, 0, 0],
    cursor: { points: { size: 6 }, drag: { x: false, y: false }, sync: { key: 'sluice' } },
    legend: { live: true },
    hooks: {
      ready: [tellLast],
      setCursor: [(plot) => (plot.cursor.idx === null ? tellLast(plot) : undefined)],
    },
    scales: { y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      { ...axis, size: 28, space: 80, values: (_plot, splits) => timeTexts(splits) },
      {
        ...axis,
        size: 62,
        space: 32,
        ...(unit === 'seconds' ? { incrs: secondSteps } : {}),
        values: (_plot, splits) => splits.map((at) => axisText(at)),
      },
    ],
  };
}

/** `valueAt`: of a line by itself, also where lines are stacked. */
function seriesOf(
  lines: readonly Line[],
  unit: ChartProps['unit'],
  valueAt: (line: number, at: number) => number | null,
): UPlot.Series[] {
  const { value: valueText } = texts[unit];
  const text = (value: number | null) => (value === null ? '–' : valueText(value));
  return [
    {
      value: (_plot, at: number | null) => (at === null ? '–' : dateTime(at * 1000).slice(5, 16)),
    },
    ...lines.map(({ label, color: name, isFilled, isDashed }, line): UPlot.Series => ({
      label,
      stroke: color(name),
      width: 1.5,
      points: { show: false },
      spanGaps: true,
      ...(isFilled === true ? { fill: color(`${name}-fill`) } : {}),
      ...(isDashed === true ? { dash: [5, 4] } : {}),
      value: (_plot, _value, _series, at) => text(at === null ? null : valueAt(line, at)),
    })),
  ];
}

/** The first line is the lowest. */
function stacked(lines: readonly Line[]): number[][] {
  const sums: number[] = [];
  return lines.map(({ values }) =>
    values.map((value, at) => (sums[at] = (sums[at] ?? 0) + (value ?? 0))),
  );
}

/** What is between a line and the one that it stands on. */
function bandsOf(lines: readonly Line[]): UPlot.Band[] {
  return lines.slice(1).map(({ color: name }, below) => ({
    series: [below + 2, below + 1],
    fill: color(`${name}-fill`),
  }));
}

/** A custom property of the style sheet, as a canvas takes it. */
function color(name: string): string {
  return resolveColor(getComputedStyle(document.documentElement).getPropertyValue(name));
}

/** Steps that people count time in. */
const secondSteps = [
  ...[0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30],
  ...[
    60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200, 86_400, 172_800, 604_800,
  ],
];

/** While nobody points at the chart its legend says the last values. */
function tellLast(plot: UPlot): void {
  const last = plot.data[0].length - 1;
  if (last >= 0) plot.setLegend({ idx: last });
}

/** The time of the day; with its day where a day begins, or where more than a day is shown. */
function timeTexts(splits: readonly number[]): string[] {
  const isLong = (splits.at(-1) ?? 0) - (splits[0] ?? 0) > 100_000;
  return splits.map((at) => {
    const text = dateTime(at * 1000);
    const isMidnight = text.slice(11, 16) === '00:00';
    return isLong || isMidnight ? text.slice(5, isMidnight ? 10 : 16) : text.slice(11, 16);
  });
}

/** A canvas knows no `light-dark()`: an element computes it. */
function resolveColor(value: string): string {
  const probe = document.createElement('span');
  probe.style.color = value;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
