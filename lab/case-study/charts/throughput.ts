import type * as echarts from 'echarts';
import { draw, fontFamily, type Chart } from '../../../bench/draw.js';
import { answersPerSecond, measure } from '../measures.js';
import type { Ran } from '../work.js';
import { colours, faint, hair, heading, ink, secondsAxis } from './look.js';

export interface Panel {
  readonly title: string;
  readonly colour: keyof typeof colours;
  readonly rans: readonly Ran[];
  /** How long it took in the published case. */
  readonly publishedSeconds?: number;
  /** As much as the limits let through. */
  readonly allowedPerSecond?: number;
}

const pieceMs = 2_000;
const width = 1_200;
const panelHeight = 200;
const top = 104;
const left = 76;
const right = 130;
const plotTop = 34;
const plotHeight = panelHeight - 78;
/** Closer to the end than this, the published line would cut the figures at the end. */
const apartSeconds = 30;

/** One below the other, over one time: each has its own height, since each has its own pace. */
export function drawThroughput(panels: readonly Panel[], about: string): Chart {
  const longest = Math.max(
    ...panels.flatMap(({ rans, publishedSeconds = 0 }) => [
      measure(rans).durationMs,
      publishedSeconds * 1_000,
    ]),
  );
  const tasks = panels[0]?.rans.length ?? 0;
  const maxSeconds = Math.ceil(longest / 30_000) * 30;
  const height = top + panelHeight * panels.length + 20;
  const option: echarts.EChartsOption = {
    animation: false,
    backgroundColor: '#ffffff',
    textStyle: { fontFamily, color: ink },
    title: [
      heading(
        `The same ${tasks.toLocaleString('en')} tasks, ${panels.length === 3 ? 'three' : 'several'} ways`,
        `Tasks finished per second, ${about}`,
      ),
      ...panels.map(panelTitle),
    ],
    grid: panels.map((_, index) => ({
      left,
      right,
      top: topOf(index) + plotTop,
      height: plotHeight,
    })),
    xAxis: panels.map((_, index) => secondsAxis(index, maxSeconds, 30)),
    yAxis: panels.map((_, index) => rateAxis(index)),
    series: panels.flatMap((panel, index) => [
      curve(panel, index),
      ...published(panel, index),
      ...allowed(panel, index),
      ending(panel, index),
    ]),
  };
  return draw(option, { width, height });
}

function topOf(index: number): number {
  return top + index * panelHeight;
}

/** The dashed line is told of here: beside it stand the figures of the end. */
function panelTitle(
  { title, colour, allowedPerSecond }: Panel,
  index: number,
): echarts.TitleComponentOption {
  const dashed =
    allowedPerSecond === undefined
      ? ''
      : `; dashed: ${allowedPerSecond.toFixed(2)} a second allowed`;
  return {
    text: `${title}${dashed}`,
    left: 36,
    top: topOf(index),
    padding: 0,
    textStyle: { fontFamily, fontSize: 15, fontWeight: 600, color: colours[colour] },
  };
}

function rateAxis(gridIndex: number): echarts.YAXisComponentOption {
  return {
    gridIndex,
    type: 'value',
    min: 0,
    splitNumber: 2,
    axisLine: { show: false },
    axisTick: { show: false },
    splitLine: { lineStyle: { color: hair } },
    axisLabel: { fontFamily, fontSize: 12, color: faint },
  };
}

function curve({ rans, colour }: Panel, index: number): echarts.LineSeriesOption {
  const rates = answersPerSecond(rans, pieceMs);
  const points = rates.map((rate, piece) => [(piece * pieceMs) / 1_000, rate]);
  return {
    type: 'line',
    silent: true,
    xAxisIndex: index,
    yAxisIndex: index,
    step: 'end',
    symbol: 'none',
    lineStyle: { color: colours[colour], width: 1.5 },
    areaStyle: { color: colours[colour], opacity: 0.22 },
    data: [...points, [(rates.length * pieceMs) / 1_000, 0]],
  };
}

/** Where it was over, and what that makes. */
function ending(
  { rans, colour, publishedSeconds = 0 }: Panel,
  index: number,
): echarts.LineSeriesOption {
  const { durationMs, perSecond } = measure(rans);
  const besideSeconds = publishedSeconds - durationMs / 1_000;
  const isClose = besideSeconds > 0 && besideSeconds < apartSeconds;
  return {
    ...upright(index, durationMs / 1_000, {
      color: colours[colour],
      width: 2,
      type: 'solid',
    }),
    markPoint: {
      silent: true,
      symbol: 'rect',
      symbolSize: 0,
      data: [{ name: 'end', coord: [isClose ? publishedSeconds : durationMs / 1_000, 0] }],
      label: {
        position: [10, -plotHeight + 4],
        align: 'left',
        verticalAlign: 'top',
        formatter: `{a|${(durationMs / 1_000).toFixed(0)} s}\n{b|${perSecond.toFixed(1)} tasks/s}`,
        rich: {
          a: { fontFamily, fontSize: 22, fontWeight: 600, color: ink, lineHeight: 28 },
          b: { fontFamily, fontSize: 14, color: ink, lineHeight: 20 },
        },
      },
    },
  };
}

function published({ publishedSeconds }: Panel, index: number): echarts.LineSeriesOption[] {
  if (publishedSeconds === undefined) return [];
  return [
    {
      ...upright(index, publishedSeconds, { color: faint, width: 1, type: 'dashed' }),
      markPoint: {
        silent: true,
        symbol: 'rect',
        symbolSize: 0,
        data: [{ name: 'published', coord: [publishedSeconds, 0] }],
        label: {
          position: [8, -22],
          align: 'left',
          verticalAlign: 'top',
          formatter: `published: ${publishedSeconds} s`,
          fontFamily,
          fontSize: 12,
          color: faint,
        },
      },
    },
  ];
}

function allowed({ allowedPerSecond }: Panel, index: number): echarts.LineSeriesOption[] {
  if (allowedPerSecond === undefined) return [];
  return [
    {
      type: 'line',
      silent: true,
      xAxisIndex: index,
      yAxisIndex: index,
      data: [],
      markLine: {
        silent: true,
        symbol: 'none',
        label: { show: false },
        lineStyle: { color: ink, width: 1, type: 'dashed' },
        data: [{ yAxis: allowedPerSecond }],
      },
    },
  ];
}

function upright(
  index: number,
  atSeconds: number,
  lineStyle: echarts.LineSeriesOption['lineStyle'],
): echarts.LineSeriesOption {
  return {
    type: 'line',
    silent: true,
    xAxisIndex: index,
    yAxisIndex: index,
    data: [],
    markLine: {
      silent: true,
      symbol: 'none',
      label: { show: false },
      lineStyle: lineStyle as object,
      data: [{ xAxis: atSeconds }],
    },
  };
}
