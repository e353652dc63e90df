/** `1.10.0`, `v2`, `3.0.0-beta.2+build`, `20251118`: numbers with dots, then perhaps a pre-release. */
const pattern = /^v?(\d+(?:\.\d+)*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]*)?$/;

interface Version {
  readonly numbers: readonly string[];
  /** Null: a release. */
  readonly preRelease: readonly string[] | null;
}

/**
 * Below 0: `one` is older than `other`. Null: they have no order, as two Git hashes. Ordered as in
 * Semantic Versioning, with any number of numbers.
 */
export function compareVersions(one: string, other: string): number | null {
  if (one === other) return 0;
  const [first, second] = [parse(one), parse(other)];
  if (first === null || second === null) return null;
  return compareNumbers(first.numbers, second.numbers) || comparePreReleases(first, second);
}

function parse(text: string): Version | null {
  const [, numbers, preRelease] = pattern.exec(text) ?? [];
  if (numbers === undefined) return null;
  return { numbers: numbers.split('.'), preRelease: preRelease?.split('.') ?? null };
}

/** What one of them does not name is 0: 1.2 is 1.2.0. */
function compareNumbers(one: readonly string[], other: readonly string[]): number {
  const length = Math.max(one.length, other.length);
  for (let place = 0; place < length; place += 1) {
    const order = compareDigits(one[place] ?? '0', other[place] ?? '0');
    if (order !== 0) return order;
  }
  return 0;
}

/** As text: a build number may have more digits than a number can hold. */
function compareDigits(one: string, other: string): number {
  const [first, second] = [one.replace(/^0+/, ''), other.replace(/^0+/, '')];
  return first.length - second.length || compareText(first, second);
}

/** A release is newer than its pre-releases; of two pre-releases the longer one, where the other ends. */
function comparePreReleases({ preRelease: one }: Version, { preRelease: other }: Version): number {
  if (one === null || other === null) return Number(one === null) - Number(other === null);
  for (const [place, part] of one.entries()) {
    const otherPart = other[place];
    if (otherPart === undefined) return 1;
    const order = compareParts(part, otherPart);
    if (order !== 0) return order;
  }
  return one.length - other.length;
}

/** Numbers come before words. */
function compareParts(one: string, other: string): number {
  const [isNumber, isOtherNumber] = [/^\d+$/.test(one), /^\d+$/.test(other)];
  if (isNumber && isOtherNumber) return compareDigits(one, other);
  if (isNumber !== isOtherNumber) return isNumber ? -1 : 1;
  return compareText(one, other);
}

function compareText(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
