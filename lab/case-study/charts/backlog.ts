import type * as echarts from 'echarts';
import { draw, fontFamily, type Chart } from '../../../bench/draw.js';
import { backlogOf, type Level } from '../measures.js';
import type { Ran } from '../work.js';
import { colours, faint, hair, heading, ink } from './look.js';

export interface Shade {
  readonly fromMs: number;
  readonly toMs: number;
  readonly label: string;
}

export interface BacklogChart {
  readonly title: string;
  readonly about: string;
  readonly batch: readonly Ran[];
  readonly sluice: readonly Ran[];
  readonly shades: readonly Shade[];
}

const width = 1_200;
const height = 470;
const everyMs = 1_000;
const minuteMs = 60_000;

/** How many had arrived and had no answer yet, with one system and with the other. */
export function drawBacklog({ title, about, batch, sluice, shades }: BacklogChart): Chart {
  const levels = { batch: backlogOf(batch, everyMs), sluice: backlogOf(sluice, everyMs) };
  const maxMinutes = Math.ceil(((levels.batch.at(-1)?.atMs ?? 0) / minuteMs) * 2) / 2;
  const option: echarts.EChartsOption = {
    animation: false,
    backgroundColor: '#ffffff',
    textStyle: { fontFamily, color: ink },
    title: heading(title, `Tasks that have arrived and are not answered, ${about}`),
    grid: { left: 76, right: 130, top: 112, bottom: 48 },
    xAxis: {
      type: 'value',
      min: 0,
      max: maxMinutes,
      interval: 1,
      axisLine: { lineStyle: { color: faint } },
      axisTick: { show: true, lineStyle: { color: faint } },
      splitLine: { show: false },
      axisLabel: {
        fontFamily,
        fontSize: 12,
        color: faint,
        formatter: (value: number) => (value === 0 ? '0' : `${value} min`),
      },
    },
    yAxis: {
      type: 'value',
      min: 0,
      // Room for what is written above the highest point.
      max: ({ max }: { max: number }) => roundUp(max * 1.08),
      splitNumber: 4,
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { lineStyle: { color: hair } },
      axisLabel: { fontFamily, fontSize: 12, color: faint },
    },
    series: [
      line(
        'Batch',
        colours.batch,
        levels.batch,
        shades.map((shade) => ({ ...shade, toMs: Math.min(shade.toMs, maxMinutes * minuteMs) })),
      ),
      line('Sluice', colours.sluice, levels.sluice, []),
    ],
  };
  return draw(option, { width, height });
}

/** To two figures. */
function roundUp(value: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1) * 5;
  return Math.ceil(value / unit) * unit;
}

function line(
  name: string,
  color: string,
  levels: readonly Level[],
  shades: readonly Shade[],
): echarts.LineSeriesOption {
  const most = levels.reduce((top, level) => (level.count > top.count ? level : top), {
    atMs: 0,
    count: 0,
  });
  return {
    type: 'line',
    silent: true,
    symbol: 'none',
    lineStyle: { color, width: 2 },
    areaStyle: { color, opacity: 0.12 },
    data: levels.map(({ atMs, count }) => [atMs / minuteMs, count]),
    markPoint: {
      silent: true,
      symbol: 'circle',
      symbolSize: 7,
      itemStyle: { color },
      label: {
        position: 'top',
        formatter: `${name}: at most ${most.count.toLocaleString('en')}`,
        fontFamily,
        fontSize: 14,
        fontWeight: 600,
        color,
      },
      data: [{ name: 'most', coord: [most.atMs / minuteMs, most.count] }],
    },
    markArea: {
      silent: true,
      itemStyle: { color: '#f4f5f7' },
      label: { position: 'insideTopLeft', fontFamily, fontSize: 12, color: faint },
      data: shades.map(({ fromMs, toMs, label }) => [
        { name: label, xAxis: fromMs / minuteMs },
        { xAxis: toMs / minuteMs },
      ]),
    },
  };
}
