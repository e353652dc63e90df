const width = 96;
const height = 22;

/** The course of a number, without axes. */
export function Sparkline({ values, label }: { values: readonly number[]; label: string }) {
  if (values.length < 2) return <span class="spark" />;
  const most = Math.max(...values, 1);
  const step = width / (values.length - 1);
  const points = values.map(
    (value, index) =>
      `${(index * step).toFixed(1)},${(height - 2 - (value / most) * (height - 4)).toFixed(1)}`,
  );
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      <title>{label}</title>
      <polygon class="spark-fill" points={`0,${height} ${points.join(' ')} ${width},${height}`} />
      <polyline class="spark-line" points={points.join(' ')} />
    </svg>
  );
}
