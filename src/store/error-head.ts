/** Characters of a stored error that are read where only code and message count: details may take 256 KiB. */
export const errorHeadLength = 4_000;

export interface ErrorHead {
  readonly code: string;
  readonly message: string;
}

/**
 * Code and message from the beginning of a stored error. The store writes them first, so that what was cut off is the
 * end of the message or comes after it. Not by Postgres: its JSON functions refuse an escape that is no text to it.
 */
export function readErrorHead(text: string | null): ErrorHead {
  if (!text?.startsWith(beforeCode)) return { code: 'unknown', message: '' };
  const code = readString(text, beforeCode.length);
  const rest = code.end + 1;
  if (!text.startsWith(beforeMessage, rest)) return { code: code.value, message: '' };
  return { code: code.value, message: readString(text, rest + beforeMessage.length).value };
}

const beforeCode = '{"code":"';
const beforeMessage = ',"message":"';
/** Of `\u12ab`, less one: as much may be left of an escape that was cut off. */
const longestCutEscape = 5;

/** From behind its quote; `end` is where the closing quote is, or the text ends. */
function readString(text: string, from: number): { readonly value: string; readonly end: number } {
  let end = from;
  while (end < text.length && text.charAt(end) !== '"') end += text.charAt(end) === '\\' ? 2 : 1;
  const raw = text.slice(from, end);
  for (let cut = 0; cut <= longestCutEscape; cut += 1) {
    try {
      return { value: JSON.parse(`"${raw.slice(0, raw.length - cut)}"`) as string, end };
    } catch {
      // An escape was cut off at the end.
    }
  }
  return { value: '', end };
}
