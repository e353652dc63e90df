/** Text of Postgres holds no NUL and no half of a pair. */
const unfit = /\0|\p{Surrogate}/gu;
const firstHalf = /[\ud800-\udbff]$/;

/**
 * What Postgres keeps of a text as it is: at most `maxLength` UTF-16 units, ending with a whole character. What would be
 * stored otherwise than it was sent would never be found again.
 */
export function storableText(text: string, maxLength: number): string {
  const cut = text.length > maxLength ? text.slice(0, maxLength).replace(firstHalf, '') : text;
  return cut.replace(unfit, '\ufffd');
}
