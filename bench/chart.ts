import type * as echarts from 'echarts';
import { draw, fontFamily, type Chart } from './draw.js';
import { contenders, titleOf, type Contender } from './run/contenders.js';
import { measures, show, type MeasureName } from './run/measures.js';
import type { Report } from './run/report.js';
import type { Spread } from './run/summary.js';

const ink = '#1f2933';
const faint = '#8794a1';
const ours = '#0b7285';
const theirs = '#b6c2cd';

const width = 1_200;
const panelHeight = 330;
const panels: readonly MeasureName[] = ['process', 'bulk', 'submit', 'startP50'];

/** Medians as bars with their spread as whiskers, one panel for each measure. */
export function drawRates(report: Report): Chart {
  const height = 110 + panelHeight * Math.ceil(panels.length / 2);
  return draw(optionFor(report), { width, height });
}

function optionFor(report: Report): echarts.EChartsOption {
  const { sizes, rounds, machine } = report;
  const names = Object.keys(report.summary);
  return {
    animation: false,
    backgroundColor: '#ffffff',
    textStyle: { fontFamily, color: ink },
    title: [
      {
        text: 'Sluice beside its peers',
        subtext:
          `${sizes.tasks.toLocaleString('en')} tasks that do nothing; medians of ${rounds} ` +
          `interleaved rounds with their spread; ${machine}`,
        left: 24,
        top: 18,
        textStyle: { fontFamily, fontSize: 22, fontWeight: 600, color: ink },
        subtextStyle: { fontFamily, fontSize: 13, color: faint },
      },
      ...panels.map((name, index) => panelTitle(name, index)),
    ],
    grid: panels.map((_, index) => ({
      left: placeOf(index).left + 190,
      top: placeOf(index).top + 34,
      width: width / 2 - 300,
      height: panelHeight - 70,
    })),
    xAxis: panels.map((_, index) => ({
      gridIndex: index,
      type: 'value' as const,
      show: false,
      min: 0,
    })),
    yAxis: panels.map((_, index) => ({
      gridIndex: index,
      type: 'category' as const,
      inverse: true,
      data: names.map(titleOf),
      axisLine: { show: false },
      axisTick: { show: false },
      axisLabel: { fontFamily, fontSize: 13, color: ink },
    })),
    series: panels.flatMap((name, index) => {
      const spreads = names.map((contender) => report.summary[contender]?.[name]);
      return [bars(index, names, spreads), whiskers(name, index, names, spreads)];
    }),
  };
}

function panelTitle(name: MeasureName, index: number): echarts.TitleComponentOption {
  const { title, unit, better } = measures[name];
  return {
    text: `${title}, ${unit}`,
    subtext: better === 'more' ? 'more is better' : 'less is better',
    itemGap: 6,
    left: placeOf(index).left,
    top: placeOf(index).top - 16,
    textStyle: { fontFamily, fontSize: 15, fontWeight: 600, color: ink },
    subtextStyle: { fontFamily, fontSize: 12, color: faint },
  };
}

function placeOf(index: number): { readonly left: number; readonly top: number } {
  return { left: 24 + (index % 2) * (width / 2), top: 108 + Math.floor(index / 2) * panelHeight };
}

function bars(
  index: number,
  names: readonly string[],
  spreads: readonly (Spread | undefined)[],
): echarts.BarSeriesOption {
  return {
    type: 'bar',
    xAxisIndex: index,
    yAxisIndex: index,
    barWidth: '58%',
    data: spreads.map((spread, place) => ({
      value: spread?.median ?? 0,
      itemStyle: { ...fillOf(names[place]), borderRadius: [0, 3, 3, 0] },
    })),
  };
}

/** From the least to the most, and the median in figures beside them. */
function whiskers(
  name: MeasureName,
  index: number,
  names: readonly string[],
  spreads: readonly (Spread | undefined)[],
): echarts.CustomSeriesOption {
  return {
    type: 'custom',
    xAxisIndex: index,
    yAxisIndex: index,
    silent: true,
    z: 3,
    data: spreads.flatMap((spread, place) =>
      spread === undefined ? [] : [[spread.least, spread.most, place]],
    ),
    encode: { x: [0, 1], y: 2 },
    renderItem: (_, api) => {
      const place = api.value(2) as number;
      const [x1 = 0, y = 0] = api.coord([api.value(0), place]);
      const [x2 = 0] = api.coord([api.value(1), place]);
      const weight = isOurs(names[place]) ? 600 : 400;
      return {
        type: 'group',
        children: [
          { type: 'line', shape: { x1, y1: y, x2, y2: y }, style: { stroke: ink, lineWidth: 1.5 } },
          {
            type: 'text',
            style: {
              text: show(name, spreads[place]?.median ?? Number.NaN),
              x: x2 + 8,
              y,
              verticalAlign: 'middle',
              font: `${weight} 13px ${fontFamily}`,
              fill: ink,
            },
          },
        ],
      };
    },
  };
}

function isOurs(name: string | undefined): boolean {
  return sideOf(name) === 'sluice';
}

/** The limit is an outline: nobody who could be chosen. */
function fillOf(name: string | undefined) {
  if (sideOf(name) !== 'limit') return { color: isOurs(name) ? ours : theirs };
  const borderType = 'dashed' as const;
  return { color: '#ffffff', borderColor: theirs, borderWidth: 1.5, borderType };
}

function sideOf(name: string | undefined): Contender['side'] | undefined {
  return contenders.find((contender) => contender.name === name)?.side;
}
