import { isIPv6 } from 'node:net';

export interface AttemptLimits {
  readonly attempts: number;
  readonly windowMs: number;
  /** Addresses or keys that are remembered; beyond them the oldest is forgotten. */
  readonly remembered: number;
}

const defaultLimits: AttemptLimits = { attempts: 10, windowMs: 60_000, remembered: 10_000 };

interface Counted {
  readonly sinceMs: number;
  count: number;
}

/** Counts attempts by the address they come from, or by the key they name. */
export class Attempts {
  readonly #limits: AttemptLimits;
  readonly #counted = new Map<string, Counted>();

  constructor(limits: Partial<AttemptLimits> = {}) {
    this.#limits = { ...defaultLimits, ...limits };
  }

  note(subject: string, nowMs: number): void {
    const network = networkOf(subject);
    const counted = this.#find(network, nowMs);
    if (counted !== null) counted.count += 1;
    else this.#remember(network, nowMs);
  }

  /** How long its next attempt is refused; null: it has attempts left. */
  blockedForMs(subject: string, nowMs: number): number | null {
    const counted = this.#find(networkOf(subject), nowMs);
    if (counted === null || counted.count < this.#limits.attempts) return null;
    return counted.sinceMs + this.#limits.windowMs - nowMs;
  }

  #find(network: string, nowMs: number): Counted | null {
    const counted = this.#counted.get(network);
    if (counted === undefined) return null;
    if (nowMs < counted.sinceMs + this.#limits.windowMs) return counted;
    this.#counted.delete(network);
    return null;
  }

  #remember(network: string, nowMs: number): void {
    this.#counted.set(network, { sinceMs: nowMs, count: 1 });
    if (this.#counted.size <= this.#limits.remembered) return;
    const [oldest] = this.#counted.keys();
    if (oldest !== undefined) this.#counted.delete(oldest);
  }
}

/** Whoever has one address of IPv6 has all of its /64. */
export function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.toLowerCase().split('::');
  const left = groupsOf(head);
  const right = groupsOf(tail ?? '');
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return [...left, ...zeros, ...right].slice(0, 4).join(':');
}

function groupsOf(text: string): string[] {
  return text === '' ? [] : text.split(':');
}
