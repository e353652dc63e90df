const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1 });
const twoDigits = new Intl.NumberFormat('en-US', { maximumFractionDigits: 2 });
const short = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });

/** 12,345 */
export function count(value: number): string {
  return whole.format(value);
}

/** 12.3K: where there is little room. */
export function compact(value: number): string {
  return Math.abs(value) < 10_000 ? amount(value) : short.format(value);
}

/** 0.25, 3.4, 1,204 */
export function amount(value: number): string {
  const size = Math.abs(value);
  if (size >= 100) return whole.format(value);
  return size >= 10 ? oneDigit.format(value) : twoDigits.format(value);
}

export function percent(share: number): string {
  return `${amount(share * 100)} %`;
}

/** 340 ms, 4.1 s, 3 min 20 s, 2 h 5 min, 3 d 4 h */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return '–';
  if (seconds < 0) return '0 s';
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${oneDigit.format(seconds)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3_600) return parts(Math.round(seconds), 60, 'min', 's');
  if (seconds < 86_400) return parts(Math.round(seconds / 60), 60, 'h', 'min');
  return parts(Math.round(seconds / 3_600), 24, 'd', 'h');
}

function parts(value: number, base: number, large: string, small: string): string {
  const rest = value % base;
  const main = `${Math.floor(value / base)} ${large}`;
  return rest === 0 ? main : `${main} ${rest} ${small}`;
}

/** 3 min 20 s ago; in 4 s */
export function ago(at: string, nowMs = Date.now()): string {
  const seconds = (nowMs - Date.parse(at)) / 1000;
  if (Math.abs(seconds) < 1) return 'now';
  return seconds >= 0 ? `${duration(seconds)} ago` : `in ${duration(-seconds)}`;
}

/** 2026-01-31 12:00:00.123, in the time zone of the reader. */
export function dateTime(at: string | number): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return `${day} ${time}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

/** The time of today, else with its day. */
export function clock(at: string): string {
  const text = dateTime(at);
  const today = dateTime(Date.now()).slice(0, 10);
  return text.startsWith(today) ? text.slice(11, 19) : text.slice(0, 16);
}

/** 1 task, 2 tasks */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** dead_letter → dead letter */
export function words(name: string): string {
  return name.replaceAll('_', ' ');
}
