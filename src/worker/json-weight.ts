/** About how many bytes a value takes, in memory and as JSON alike; exact sizes cost a JSON.stringify. */
export function jsonWeight(value: unknown): number {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 8;
  let weight = 8;
  if (Array.isArray(value)) {
    for (const item of value) weight += jsonWeight(item);
    return weight;
  }
  for (const key of Object.keys(value)) {
    weight += key.length + jsonWeight((value as Record<string, unknown>)[key]);
  }
  return weight;
}
