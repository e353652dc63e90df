export function inChunks<T>(values: readonly T[], size: number): (readonly T[])[] {
  const chunks: (readonly T[])[] = [];
  for (let from = 0; from < values.length; from += size) {
    chunks.push(values.slice(from, from + size));
  }
  return chunks;
}
