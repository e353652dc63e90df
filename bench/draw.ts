import { createRequire } from 'node:module';
import { createCanvas, GlobalFonts } from '@napi-rs/canvas';
import * as echarts from 'echarts';

export interface Chart {
  readonly svg: string;
  readonly png: Buffer;
}

interface Page {
  readonly width: number;
  readonly height: number;
}

export const fontFamily = 'Inter, system-ui, sans-serif';
const scale = 2;
const require = createRequire(import.meta.url);

/** The same picture twice; the PNG with twice the points, for screens that have them. */
export function draw(option: echarts.EChartsOption, page: Page): Chart {
  useOwnFont();
  // Widths of texts are measured on it, for the SVG as well.
  echarts.setPlatformAPI({
    createCanvas: () => createCanvas(1, 1),
  });
  return { svg: toSvg(option, page), png: toPng(option, page) };
}

/** The same letters on every machine. */
function useOwnFont(): void {
  const files = [
    require.resolve('@fontsource/inter/files/inter-latin-400-normal.woff2'),
    require.resolve('@fontsource/inter/files/inter-latin-600-normal.woff2'),
  ];
  for (const file of files) GlobalFonts.registerFromPath(file, 'Inter');
}

function toSvg(option: echarts.EChartsOption, { width, height }: Page): string {
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width, height });
  chart.setOption(option);
  const svg = chart.renderToSVGString();
  chart.dispose();
  return svg;
}

function toPng(option: echarts.EChartsOption, { width, height }: Page): Buffer {
  const canvas = createCanvas(width * scale, height * scale);
  const chart = echarts.init(canvas, null, {
    renderer: 'canvas',
    width,
    height,
    devicePixelRatio: scale,
  });
  chart.setOption(option);
  // Nothing else would paint it: there is no screen to wait for.
  chart.getZr().flush();
  const png = canvas.toBuffer('image/png');
  chart.dispose();
  return png;
}
