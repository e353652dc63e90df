import { bounds } from './bounds.js';
import {
  labelMeaning,
  labelPattern,
  nameMeaning,
  nameOrAnyPattern,
  namePattern,
  namePrefixPattern,
  textPattern,
  tokenPattern,
  traceparentPattern,
  uuidMeaning,
  uuidPattern,
} from './patterns.js';

/** What a refusal by a schema says instead of showing a regular expression. Apart from the patterns: bundles of the client do without. */
export const patternMeanings: ReadonlyMap<string, string> = new Map([
  [namePattern, nameMeaning],
  [nameOrAnyPattern, `must be "*", or 1 to ${bounds.nameLength} of A-Z a-z 0-9 . _ : / -`],
  [namePrefixPattern, `${nameMeaning}, and may end with "*"`],
  [textPattern, 'must not hold NUL or half of a surrogate pair'],
  [labelPattern, labelMeaning],
  [uuidPattern, uuidMeaning],
  [traceparentPattern, 'must be a W3C traceparent, like 00-<32 hex>-<16 hex>-01'],
  [tokenPattern, 'must be a token that this server gave'],
]);
