/** The known name that was probably meant; null when none is close, or several are as close. */
export function findMeant(given: string, known: readonly string[]): string | null {
  const plainGiven = plain(given);
  const names = known.map((name) => ({ name, plain: plain(name) }));
  const same = names.filter((one) => one.plain === plainGiven);
  if (same.length > 0) return onlyOne(same);
  const maxDistance = Math.max(1, Math.floor(plainGiven.length / 3));
  const distances = names.map((one) => ({ ...one, distance: distance(plainGiven, one.plain) }));
  const least = Math.min(...distances.map((one) => one.distance));
  if (least <= maxDistance) return onlyOne(distances.filter((one) => one.distance === least));
  return onlyOne(names.filter((one) => isPart(plainGiven, one.plain)));
}

/** `maxRetries`, `max_retries` and `max-retries` are one name written in three ways. */
function plain(name: string): string {
  return name.replaceAll(/[_-]/g, '').toLowerCase();
}

/** `prio` of `priority`, `retries` of `maxretries`. */
function isPart(given: string, known: string): boolean {
  return given.length >= 3 && (known.startsWith(given) || known.endsWith(given));
}

function onlyOne(names: readonly { readonly name: string }[]): string | null {
  const [first, second] = names;
  return first === undefined || second !== undefined ? null : first.name;
}

/** Letters that are added, left out, replaced or swapped with their neighbour. */
function distance(one: string, other: string): number {
  let before: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (let row = 1; row <= one.length; row += 1) {
    const next = [row];
    for (let column = 1; column <= other.length; column += 1) {
      const cost = one[row - 1] === other[column - 1] ? 0 : 1;
      const isSwap =
        row > 1 &&
        column > 1 &&
        one[row - 1] === other[column - 2] &&
        one[row - 2] === other[column - 1];
      next.push(
        Math.min(
          (last[column] ?? 0) + 1,
          (next[column - 1] ?? 0) + 1,
          (last[column - 1] ?? 0) + cost,
          isSwap ? (before[column - 2] ?? 0) + 1 : Infinity,
        ),
      );
    }
    before = last;
    last = next;
  }
  return last[other.length] ?? 0;
}
