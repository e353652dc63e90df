import type pg from 'pg';

/** However busy it is, a connection goes back to its pool so often, which may replace it. */
const heldMs = 60_000;

export interface OrderedOptions {
  readonly connect: () => Promise<pg.PoolClient>;
  /** Whether a statement may be sent before the last one is answered. */
  readonly mayOverlap: (client: pg.PoolClient, text: string) => boolean;
  readonly isBroken: (error: unknown) => boolean;
}

/** A connection while somebody waits for it. */
interface Held {
  readonly client: Promise<pg.PoolClient>;
  readonly sinceMs: number;
  underWay: number;
  isLetGo: boolean;
  /** Of the last one that was asked for: when it is sent, and when it is answered. They never reject. */
  sent: Promise<unknown>;
  last: Promise<unknown>;
}

/**
 * Statements on one connection, done in the order in which they were asked for. The next one is at
 * Postgres before the last one is answered: it works on it while the answer is read here.
 */
export class OrderedStatements {
  readonly #options: OrderedOptions;
  #held: Held | null = null;

  constructor(options: OrderedOptions) {
    this.#options = options;
  }

  async run<Answer>(
    text: string,
    statement: (client: pg.PoolClient) => Promise<Answer>,
  ): Promise<Answer> {
    const held = this.#hold();
    held.underWay += 1;
    const { sent, last } = held;
    let noteSent: () => void = () => undefined;
    held.sent = new Promise<void>((resolve) => {
      noteSent = resolve;
    });
    const send = async (client: pg.PoolClient): Promise<Answer> => {
      await sent;
      if (!this.#options.mayOverlap(client, text)) await last;
      const answer = statement(client);
      noteSent();
      return answer;
    };
    const answer = this.#runOn(held, send).finally(noteSent);
    held.last = answer.catch(() => undefined);
    return answer;
  }

  #hold(): Held {
    const held = this.#held;
    if (held !== null && performance.now() - held.sinceMs < heldMs) return held;
    // What is under way on another connection comes first.
    const before = held?.last ?? Promise.resolve();
    const client = before.then(() => this.#options.connect());
    const sinceMs = performance.now();
    return (this.#held = {
      client,
      sinceMs,
      underWay: 0,
      isLetGo: false,
      sent: before,
      last: before,
    });
  }

  async #runOn<Answer>(
    held: Held,
    send: (client: pg.PoolClient) => Promise<Answer>,
  ): Promise<Answer> {
    let isBroken = false;
    try {
      return await send(await held.client);
    } catch (error) {
      isBroken = this.#options.isBroken(error);
      throw error;
    } finally {
      held.underWay -= 1;
      if (held.underWay === 0 || isBroken) await this.#letGo(held, isBroken);
    }
  }

  /** A broken one at once: what is still under way on it fails then. */
  async #letGo(held: Held, isBroken: boolean): Promise<void> {
    if (held.isLetGo) return;
    held.isLetGo = true;
    if (this.#held === held) this.#held = null;
    const client = await held.client.catch(() => null);
    client?.release(isBroken);
  }
}
