import type { QueueSettings, RateLimit } from '../../src/domain/queue-settings.js';
import type { Delivered, Ledger } from './ledger.js';
import { ChangingRule, GrantBook, type Change } from './limit-book.js';
import { Violation } from './violation.js';

interface QueueRules {
  readonly requests: GrantBook;
  readonly tokens: GrantBook;
  readonly maxConcurrency: ChangingRule<number | null>;
  readonly paused: ChangingRule<boolean>;
  shared: string | null;
}

/** What queues and limits were told, and whether what reached the workers kept to it. */
export class RuleBook {
  readonly #ledger: Ledger;
  readonly #isLive: (lease: string) => boolean;
  readonly #queues = new Map<string, QueueRules>();
  readonly #shared = new Map<string, GrantBook>();

  constructor(ledger: Ledger, isLive: (lease: string) => boolean) {
    this.#ledger = ledger;
    this.#isLive = isLive;
  }

  changeQueue(name: string): Change<QueueSettings> {
    const rules = this.#of(name);
    const requests = rules.requests.rule.change();
    const tokens = rules.tokens.rule.change();
    const concurrency = rules.maxConcurrency.change();
    // A PUT replaces everything, the pause as well.
    const pause = rules.paused.change();
    return {
      acknowledged: ({ limits, maxConcurrency, paused }, countsFromMs) => {
        requests.acknowledged(limitOf(limits, 'requests'), countsFromMs);
        tokens.acknowledged(limitOf(limits, 'tokens'), countsFromMs);
        concurrency.acknowledged(maxConcurrency, countsFromMs);
        pause.acknowledged(paused, countsFromMs);
      },
      refused: () => {
        for (const change of [requests, tokens, concurrency, pause]) change.refused();
      },
    };
  }

  changePause(name: string): Change<boolean> {
    return this.#of(name).paused.change();
  }

  changeShared(name: string): Change<RateLimit> {
    return this.#sharedOf(name).rule.change();
  }

  /** From now on, and for good. */
  share(queue: string, limit: string): void {
    this.#of(queue).shared = limit;
  }

  deliver(delivered: Delivered): void {
    const { queue, takenMs, cost } = delivered;
    const rules = this.#of(queue);
    const grant = { atMs: takenMs, cost: 1 };
    rules.requests.add(grant);
    rules.tokens.add({ atMs: takenMs, cost });
    if (rules.shared !== null) this.#sharedOf(rules.shared).add(grant);
    this.#checkConcurrency(delivered, rules);
    if (rules.paused.at(takenMs)?.rule === true) {
      throw new Violation('a paused queue gives nothing', queue);
    }
  }

  #checkConcurrency({ queue, takenMs }: Delivered, { maxConcurrency }: QueueRules): void {
    const most = maxConcurrency.at(takenMs)?.rule ?? null;
    if (most === null) return;
    const running = [...this.#ledger.delivered.values()].filter(
      (other) => other.queue === queue && this.#isLive(other.lease),
    );
    if (running.length <= most) return;
    const detail = `${running.length} run in ${queue}, at most ${most}`;
    throw new Violation('no more at once than max_concurrency', detail);
  }

  #of(name: string): QueueRules {
    const known = this.#queues.get(name);
    if (known !== undefined) return known;
    const rules = {
      requests: new GrantBook(`${name} (requests)`),
      tokens: new GrantBook(`${name} (tokens)`),
      maxConcurrency: new ChangingRule<number | null>(),
      paused: new ChangingRule<boolean>(),
      shared: null,
    };
    this.#queues.set(name, rules);
    return rules;
  }

  #sharedOf(name: string): GrantBook {
    const known = this.#shared.get(name);
    if (known !== undefined) return known;
    const book = new GrantBook(`limit ${name}`);
    this.#shared.set(name, book);
    return book;
  }
}

const unlimited = { rate: Number.POSITIVE_INFINITY, perSeconds: 1, burst: null };

function limitOf(limits: QueueSettings['limits'], unit: string): RateLimit {
  const own = limits.filter((limit): limit is RateLimit => 'rate' in limit);
  return own.find((limit) => limit.unit === unit) ?? { unit, ...unlimited };
}
