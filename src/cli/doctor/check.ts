/** `warning`: it works, but somebody should know. */
export type Health = 'ok' | 'warning' | 'failed';

export interface Check {
  readonly what: string;
  readonly health: Health;
  readonly found: string;
  /** What to do about it; null when there is nothing to do. */
  readonly advice: string | null;
}

export function ok(what: string, found: string): Check {
  return { what, health: 'ok', found, advice: null };
}

export function warning(what: string, found: string, advice: string): Check {
  return { what, health: 'warning', found, advice };
}

export function failed(what: string, found: string, advice: string): Check {
  return { what, health: 'failed', found, advice };
}
