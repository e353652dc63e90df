/** Only the beginning of a message is looked at. */
const maxRead = 2_000;
/** How long a normalised message is at most, in UTF-16 units. */
export const maxPatternLength = 200;

/**
 * An error message without what differs from task to task: numbers, ids, UUIDs, hexadecimal, instants, quoted texts and
 * the variable parts of URLs become placeholders. Messages of one cause become equal. One pass over at most 2,000
 * characters, without regular expressions, which a hostile message could make slow. Normalising twice changes nothing.
 */
export function normaliseMessage(message: string): string {
  const text = plain(message.slice(0, maxRead));
  let out = '';
  let at = 0;
  while (at < text.length && out.length <= maxPatternLength) {
    const [piece, next] = readPiece(text, at);
    out += piece;
    at = next;
  }
  return plain(out.slice(0, maxPatternLength));
}

/** Texts that Postgres can store: no NUL, no half of a pair; runs of white space are one space. */
function plain(text: string): string {
  let out = '';
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    if (code <= 0x20 || (code >= 0x7f && code <= 0xa0)) {
      if (out !== '' && !out.endsWith(' ')) out += ' ';
    } else out += code >= 0xd800 && code <= 0xdfff ? '\ufffd' : character;
  }
  return out.trimEnd();
}

/** What stands at a place, normalised, and where to go on. */
type Piece = readonly [text: string, next: number];

function readPiece(text: string, at: number): Piece {
  const character = text.charAt(at);
  if (quotes.includes(character)) return readQuoted(text, at, character);
  if (isWordCharacter(text, at)) return readWord(text, at);
  if (text.startsWith('://', at)) return readUrl(text, at);
  return [character, at + 1];
}

const quotes = '"\'`';

/** An apostrophe inside of a word opens nothing: "can't". A placeholder counts as a word. */
function readQuoted(text: string, at: number, quote: string): Piece {
  const end = text.indexOf(quote, at + 1);
  const isApostrophe =
    quote === "'" &&
    (isWordCharacter(text, at - 1) ||
      text.charAt(at - 1) === '>' ||
      isWordCharacter(text, end + 1) ||
      text.charAt(end + 1) === '<');
  return end === -1 || isApostrophe ? [quote, at + 1] : ['<text>', end + 1];
}

/** From `://` on. The host stays, and the parts of the path that have no digit. */
function readUrl(text: string, at: number): Piece {
  let end = at + 3;
  while (end < text.length && !urlEnds.includes(text.charAt(end))) end += 1;
  const rest = text.slice(at + 3, end);
  const query = rest.search(/[?#]/);
  const path = query === -1 ? rest : rest.slice(0, query);
  const tail = query === -1 ? '' : rest.length > query + 1 ? '?<query>' : rest.charAt(query);
  const parts = path.split('/').map((part) => (hasDigit(part) ? '<id>' : part));
  return [`://${parts.join('/')}${tail}`, end];
}

const urlEnds = ' "\'`<>()[]{},;';

/** Parts of letters and digits, joined by one of `-_.:+`: a name, a number, an id, an instant. */
function readWord(text: string, at: number): Piece {
  if (isUuid(text, at)) return ['<uuid>', at + 36];
  const time = endOfTime(text, at);
  if (time !== null) return ['<time>', time];
  let end = at;
  while (isWordCharacter(text, end)) end += 1;
  return [normalisePart(text.slice(at, end)), end];
}

function normalisePart(part: string): string {
  if (!hasDigit(part)) return part;
  if (part.startsWith('0x') || (part.length >= 8 && isHex(part) && !isNumber(part))) return '<hex>';
  const pieces = piecesOf(part);
  return pieces.length > 2
    ? '<id>'
    : pieces.map((piece) => (hasDigit(piece) ? '<n>' : piece)).join('');
}

/** Runs of digits and runs of letters, three at most. */
function piecesOf(part: string): string[] {
  const pieces: string[] = [];
  let from = 0;
  for (let at = 1; at <= part.length && pieces.length < 3; at += 1) {
    if (at < part.length && isDigit(part, at) === isDigit(part, from)) continue;
    pieces.push(part.slice(from, at));
    from = at;
  }
  return pieces;
}

const uuidDashes: readonly number[] = [8, 13, 18, 23];

function isUuid(text: string, at: number): boolean {
  for (let n = 0; n < 36; n += 1) {
    const fits = uuidDashes.includes(n) ? text.charAt(at + n) === '-' : isHexDigit(text, at + n);
    if (!fits) return false;
  }
  return !isWordCharacter(text, at + 36);
}

/** Where a date (2026-01-31, with or without a time) or a time of day (12:30:05) ends; null: there is none. */
function endOfTime(text: string, at: number): number | null {
  const isDate = fits(text, at, 'dddd-dd-dd') || fits(text, at, 'dddd/dd/dd');
  if (!isDate && !fits(text, at, 'dd:dd:dd')) return null;
  let end = at + (isDate ? 10 : 8);
  while (end < text.length && timeCharacters.includes(text.charAt(end))) end += 1;
  while (!isWordCharacter(text, end - 1)) end -= 1;
  // "2026-01-31 12:30:05" is one instant.
  return isDate && fits(text, end + 1, 'dd:dd:dd') ? endOfTime(text, end + 1) : end;
}

const timeCharacters = '0123456789:.TZ+-';

function fits(text: string, at: number, shape: string): boolean {
  for (let n = 0; n < shape.length; n += 1) {
    const ok =
      shape.charAt(n) === 'd' ? isDigit(text, at + n) : text.charAt(at + n) === shape.charAt(n);
    if (!ok) return false;
  }
  return true;
}

function hasDigit(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) if (isDigit(text, at)) return true;
  return false;
}

function isHex(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) if (!isHexDigit(text, at)) return false;
  return true;
}

function isNumber(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) if (!isDigit(text, at)) return false;
  return true;
}

function isWordCharacter(text: string, at: number): boolean {
  return isDigit(text, at) || isLetter(text, at);
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 0x30 && code <= 0x39;
}

function isLetter(text: string, at: number): boolean {
  const code = text.charCodeAt(at) | 0x20;
  return code >= 0x61 && code <= 0x7a;
}

function isHexDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at) | 0x20;
  return isDigit(text, at) || (code >= 0x61 && code <= 0x66);
}
