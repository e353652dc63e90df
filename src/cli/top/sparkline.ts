const levels = '▁▂▃▄▅▆▇█';

/** The last values that fit, each as a bar of its share of the largest. Null is drawn as nothing. */
export function sparkline(values: readonly (number | null)[], width: number): string {
  const shown = values.slice(Math.max(0, values.length - Math.max(0, width)));
  const most = Math.max(0, ...shown.map((value) => value ?? 0));
  return shown
    .map((value) => {
      if (value === null || value <= 0 || most === 0) return levels[0];
      return levels[Math.min(levels.length - 1, Math.round((value / most) * (levels.length - 1)))];
    })
    .join('');
}
