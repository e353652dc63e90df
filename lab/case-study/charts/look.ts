import type * as echarts from 'echarts';
import { fontFamily } from '../../../bench/draw.js';

export const ink = '#1f2933';
export const faint = '#7b8794';
export const hair = '#e4e7eb';

/** Told apart by everybody, also in grey (Okabe and Ito). */
export const colours = { batch: '#d55e00', sluice: '#0072b2', limited: '#009e73' } as const;

export function heading(text: string, subtext: string): echarts.TitleComponentOption {
  return {
    text,
    subtext,
    left: 31,
    top: 20,
    itemGap: 8,
    textStyle: { fontFamily, fontSize: 24, fontWeight: 600, color: ink },
    subtextStyle: { fontFamily, fontSize: 14, color: faint, lineHeight: 20 },
  };
}

export function secondsAxis(
  gridIndex: number,
  maxSeconds: number,
  everySeconds: number,
): echarts.XAXisComponentOption {
  return {
    gridIndex,
    type: 'value',
    min: 0,
    max: maxSeconds,
    interval: everySeconds,
    axisLine: { show: true, onZero: false, lineStyle: { color: faint } },
    axisTick: { show: true, lineStyle: { color: faint } },
    splitLine: { show: false },
    axisLabel: {
      fontFamily,
      fontSize: 12,
      color: faint,
      showMaxLabel: maxSeconds % everySeconds === 0,
      formatter: (value: number) => (value === 0 ? '0' : `${value} s`),
    },
  };
}

export function text(
  content: string,
  x: number,
  y: number,
  style: { readonly colour?: string; readonly size?: number; readonly weight?: 400 | 600 } = {},
): echarts.GraphicComponentOption {
  const { colour = ink, size = 14, weight = 400 } = style;
  return {
    type: 'text',
    x,
    y,
    style: { text: content, font: `${weight} ${size}px ${fontFamily}`, fill: colour },
  };
}
