interface KnownName {
  readonly name: string;
  readonly plain: string;
}

/** By the list of names: whoever is refused a million fields is refused them by a few lists. */
const knownLists = new WeakMap<readonly string[], readonly KnownName[]>();

/**
 * The known name that was probably meant; null when none is close, or several are as close. Names that differ too
 * much in length are not compared: callers choose how long the given one is, and how many there are.
 */
export function findMeant(given: string, known: readonly string[]): string | null {
  const names = prepare(known);
  const longest = Math.max(0, ...names.map((one) => one.plain.length));
  // With every other letter a hyphen, and a third of the rest too much.
  if (given.length > 4 * longest) return null;
  const plainGiven = plain(given);
  const same = names.filter((one) => one.plain === plainGiven);
  if (same.length > 0) return onlyOne(same);
  const maxDistance = Math.max(1, Math.floor(plainGiven.length / 3));
  const near = names
    .filter((one) => Math.abs(one.plain.length - plainGiven.length) <= maxDistance)
    .map((one) => ({ ...one, distance: distance(plainGiven, one.plain) }));
  const least = Math.min(...near.map((one) => one.distance));
  if (least <= maxDistance) return onlyOne(near.filter((one) => one.distance === least));
  return onlyOne(names.filter((one) => isPart(plainGiven, one.plain)));
}

function prepare(known: readonly string[]): readonly KnownName[] {
  const before = knownLists.get(known);
  if (before !== undefined) return before;
  const names = known.map((name) => ({ name, plain: plain(name) }));
  knownLists.set(known, names);
  return names;
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
  const width = other.length + 1;
  const steps = new Uint16Array((one.length + 1) * width);
  for (let column = 1; column < width; column += 1) steps[column] = column;
  const at = (row: number, column: number): number => steps[row * width + column] ?? 0;
  for (let row = 1; row <= one.length; row += 1) {
    const letter = one.charCodeAt(row - 1);
    steps[row * width] = row;
    for (let column = 1; column < width; column += 1) {
      const isSame = letter === other.charCodeAt(column - 1);
      const changed = at(row - 1, column - 1) + (isSame ? 0 : 1);
      const least = Math.min(at(row - 1, column) + 1, at(row, column - 1) + 1, changed);
      const isSwap =
        row > 1 &&
        column > 1 &&
        letter === other.charCodeAt(column - 2) &&
        one.charCodeAt(row - 2) === other.charCodeAt(column - 1);
      steps[row * width + column] = isSwap ? Math.min(least, at(row - 2, column - 2) + 1) : least;
    }
  }
  return at(one.length, other.length);
}
