import type * as echarts from 'echarts';
import { draw, fontFamily, type Chart } from '../../../bench/draw.js';
import { measure } from '../measures.js';
import type { Ran } from '../work.js';
import { colours, faint, heading, ink, secondsAxis, text } from './look.js';

const width = 1_200;
const height = 700;
const top = 148;
const bottom = 64;
const left = 76;
const right = 70;
const gap = 70;
const waiting = '#e9edf1';
const held = '#f6c7a4';

interface Side {
  readonly title: string;
  readonly colour: string;
  readonly rans: readonly Ran[];
  /** What the time from the end of a call to its answer is called. */
  readonly held: string | null;
}

/** Every task is a line, from when it came to when its answer was there; seconds are as long on either side. */
export function drawWaterfall(batch: readonly Ran[], sluice: readonly Ran[], about: string): Chart {
  const sides: readonly Side[] = [
    {
      title: 'Batch',
      colour: colours.batch,
      rans: batch,
      held: 'done, and held up by the slowest of its ten',
    },
    { title: 'Sluice', colour: colours.sluice, rans: sluice, held: null },
  ];
  const lengths = sides.map(({ rans }) => Math.ceil(measure(rans).durationMs / 10_000) * 10);
  const perSecond = (width - left - right - gap) / lengths.reduce((sum, each) => sum + each, 0);
  const widths = lengths.map((length) => length * perSecond);
  const lefts = [left, left + (widths[0] ?? 0) + gap];
  const option: echarts.EChartsOption = {
    animation: false,
    backgroundColor: '#ffffff',
    textStyle: { fontFamily, color: ink },
    title: heading(
      'Where the time goes',
      `Each line is one of ${batch.length.toLocaleString('en')} tasks, in the order they were submitted; ${about}`,
    ),
    grid: sides.map((_, index) => ({
      left: lefts[index] ?? left,
      width: widths[index] ?? 0,
      top,
      bottom,
    })),
    xAxis: sides.map((_, index) => secondsAxis(index, lengths[index] ?? 0, 20)),
    yAxis: sides.map(({ rans }, index) => taskAxis(index, rans.length)),
    series: sides.flatMap((side, index) => bands(side, index)),
    graphic: sides.flatMap((side, index) => key(side, lefts[index] ?? left)),
  };
  return draw(option, { width, height });
}

function taskAxis(gridIndex: number, tasks: number): echarts.YAXisComponentOption {
  return {
    gridIndex,
    type: 'value',
    inverse: true,
    min: 0,
    max: tasks,
    interval: tasks / 4,
    axisLine: { show: false },
    axisTick: { show: false },
    splitLine: { show: false },
    axisLabel: {
      fontFamily,
      fontSize: 12,
      color: faint,
      formatter: (value: number) => (value === 0 ? '1' : value.toLocaleString('en')),
    },
  };
}

function bands({ rans, colour }: Side, index: number): echarts.CustomSeriesOption[] {
  const placed = rans.map((ran, place) => ({ ...ran, place }));
  const band = (fill: string, from: keyof Ran, to: keyof Ran) => ({ fill, from, to });
  return [
    band(waiting, 'arrivedMs', 'startedMs'),
    band(held, 'endedMs', 'answeredMs'),
    band(colour, 'startedMs', 'endedMs'),
  ].map(({ fill, from, to }) => ({
    type: 'custom',
    xAxisIndex: index,
    yAxisIndex: index,
    silent: true,
    // One path for all: a thousand shapes would be a page of a megabyte.
    data: [0],
    renderItem: (_, api) => ({
      type: 'path',
      shape: {
        pathData: placed
          .map((ran) => {
            const [x1 = 0, y1 = 0] = api.coord([Number(ran[from]) / 1_000, ran.place]);
            const [x2 = 0, y2 = 0] = api.coord([Number(ran[to]) / 1_000, ran.place + 1]);
            const [x, y, across, down] = [x1, y1, x2 - x1, y2 - y1].map((each) => each.toFixed(2));
            return `M${x} ${y}h${across}v${down}h-${across}z`;
          })
          .join(''),
      },
      style: { fill },
    }),
  }));
}

/** What the colours mean, beside the title of each side. */
function key(
  { title, colour, rans, held: heldText }: Side,
  x: number,
): echarts.GraphicComponentOption[] {
  const seconds = (measure(rans).durationMs / 1_000).toFixed(0);
  const entries = [
    { fill: waiting, what: 'waits' },
    { fill: colour, what: 'runs' },
    ...(heldText === null ? [] : [{ fill: held, what: heldText }]),
  ];
  const widths = [76, 70, 0];
  const offsets = entries.map((_, n) => widths.slice(0, n).reduce((sum, each) => sum + each, 0));
  return [
    text(`${title}, ${seconds} s`, x, 98, { colour, size: 16, weight: 600 }),
    ...entries.flatMap(({ fill, what }, n): echarts.GraphicComponentOption[] => [
      {
        type: 'rect',
        shape: { x: x + (offsets[n] ?? 0), y: 126, width: 12, height: 12 },
        style: { fill },
      },
      text(what, x + (offsets[n] ?? 0) + 18, 126, { size: 13 }),
    ]),
  ];
}
