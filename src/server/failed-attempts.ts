import { isIPv6 } from 'node:net';

export interface FailureLimits {
  readonly attempts: number;
  readonly windowMs: number;
  /** Addresses that are remembered; beyond them the oldest is forgotten. */
  readonly addresses: number;
}

const defaultLimits: FailureLimits = { attempts: 10, windowMs: 60_000, addresses: 10_000 };

interface Failures {
  readonly sinceMs: number;
  count: number;
}

/** Who came with bad keys, and how often. A good key is let in whatever others of its address did. */
export class FailedAttempts {
  readonly #limits: FailureLimits;
  readonly #failures = new Map<string, Failures>();

  constructor(limits: Partial<FailureLimits> = {}) {
    this.#limits = { ...defaultLimits, ...limits };
  }

  note(address: string, nowMs: number): void {
    const network = networkOf(address);
    const failures = this.#find(network, nowMs);
    if (failures !== null) failures.count += 1;
    else this.#remember(network, nowMs);
  }

  /** How long its next bad key is not looked at; null: it has attempts left. */
  blockedForMs(address: string, nowMs: number): number | null {
    const failures = this.#find(networkOf(address), nowMs);
    if (failures === null || failures.count < this.#limits.attempts) return null;
    return failures.sinceMs + this.#limits.windowMs - nowMs;
  }

  #find(network: string, nowMs: number): Failures | null {
    const failures = this.#failures.get(network);
    if (failures === undefined) return null;
    if (nowMs < failures.sinceMs + this.#limits.windowMs) return failures;
    this.#failures.delete(network);
    return null;
  }

  #remember(network: string, nowMs: number): void {
    this.#failures.set(network, { sinceMs: nowMs, count: 1 });
    if (this.#failures.size <= this.#limits.addresses) return;
    const [oldest] = this.#failures.keys();
    if (oldest !== undefined) this.#failures.delete(oldest);
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
