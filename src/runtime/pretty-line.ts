import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

const levels: ReadonlyMap<unknown, readonly [name: string, style: Style]> = new Map([
  [10, ['TRACE', 'dim']],
  [20, ['DEBUG', 'dim']],
  [30, ['INFO ', 'green']],
  [40, ['WARN ', 'yellow']],
  [50, ['ERROR', 'red']],
  [60, ['FATAL', 'red']],
]);

export interface Terminal {
  readonly hasColors: boolean;
  /** Fields that would pass it go to the next line. */
  readonly columns: number;
}

const indent = ' '.repeat('12:03:04 WARN  '.length);

/**
 * One JSON line of the log as a person reads it in a terminal:
 * `12:03:04 WARN  task retried  task_type=chat  error_code=HTTP_500  error_message="not today"`.
 * The stack of an error follows on lines of its own.
 */
export function prettyLine(json: string, { hasColors, columns }: Terminal): string {
  const line = parse(json);
  if (line === null) return json;
  const paint = (style: Style, text: string) =>
    hasColors ? styleText(style, text, byCaller) : text;
  const { level, time, msg, err, ...fields } = line;
  const [name, style] = levels.get(level) ?? [printable(level), 'dim'];
  const text = printable(msg ?? '');
  let printed = `${clockText(time)} ${paint(style, name)} ${text}`;
  let column = indent.length + text.length;
  for (const [key, value] of Object.entries(fields)) {
    if (key === 'trace_id' && isOwnTrace(value, fields.task_id)) continue;
    const [named, said] = [`${printable(key)}=`, valueText(value)];
    const width = named.length + said.length;
    const isNext = column + 2 + width > columns;
    printed += `${isNext ? `\n${indent}` : '  '}${paint('dim', named)}${said}`;
    column = (isNext ? indent.length : column + 2) + width;
  }
  return `${printed}${errorText(err)}\n`;
}

/** The id of the task again, without its dashes, says nothing new. */
function isOwnTrace(traceId: unknown, taskId: unknown): boolean {
  return typeof taskId === 'string' && traceId === taskId.replaceAll('-', '');
}

/** The colors were decided on by the stream that is written to, not by stdout. */
const byCaller = { validateStream: false } as const;

function parse(json: string): Readonly<Record<string, unknown>> | null {
  try {
    const line: unknown = JSON.parse(json);
    return typeof line === 'object' && line !== null ? (line as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** Of the machine's own clock, as the person beside it reads it. */
function clockText(time: unknown): string {
  return typeof time === 'string' ? new Date(time).toTimeString().slice(0, 8) : '';
}

function valueText(value: unknown): string {
  if (typeof value !== 'string') return printable(JSON.stringify(value));
  return /^[\w.:/@+-]+$/.test(value) ? value : `"${printable(value)}"`;
}

/** `type: message` and where it was thrown, then its causes. */
function errorText(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  const { type, message, stack, cause } = error as Readonly<Record<string, unknown>>;
  const text =
    typeof stack === 'string'
      ? stack
      : [type, message].filter((part) => typeof part === 'string').join(': ');
  const lines = text.split('\n').map((each) => `\n    ${printable(each)}`);
  return lines.join('') + errorText(cause);
}

/** A terminal obeys control characters, and what a service answered may hold them. */
function printable(text: unknown): string {
  return String(text).replaceAll(/\p{Cc}/gu, (character) =>
    JSON.stringify(character)
      .slice(1, -1)
      .replace(/^[\x7F-\x9F]$/, '\uFFFD'),
  );
}
