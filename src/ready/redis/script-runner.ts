import { Cluster, type Redis } from 'ioredis';
import type { Clock } from '../../runtime/clock.js';
import type { Logger } from '../../runtime/log.js';
import type { RedisConnection } from './connection.js';
import { isRefusal, rightsAdvice } from './rights.js';
import type { Script } from './script.js';

/** Redis can't do it now. Nothing is wrong with what was asked. */
export class RedisAwayError extends Error {
  override readonly name: string = 'RedisAwayError';
}

/** A part of the contents is missing in Redis. They are closed by now, and to be filled anew. */
class PartLostError extends RedisAwayError {
  override readonly name = 'PartLostError';
}

export type Reply = string | number | null | readonly Reply[];
export type Argument = string | number;

export interface ScriptRunnerOptions {
  readonly connection: RedisConnection;
  /** Before all keys. Holds the hash tag. */
  readonly prefix: string;
  /** For tests: the scripts then go by this clock, and not by that of Redis. */
  readonly clock?: Clock;
  readonly log: Logger;
}

/**
 * Before all keys of the scripts, after the prefix. A version with another layout takes another number: no server
 * finds contents that it could not read.
 */
export const layout = '1:';

/** Runs scripts by their hash, and tells once when Redis stops answering them. */
export class ScriptRunner {
  readonly #connection: RedisConnection;
  /**
   * The prefix itself, a key that never exists, and one that usually does. While their slot moves to another
   * node of a cluster, no node has both: each answers "try again", and the script runs on neither. With one key
   * alone it would run on the node that does not own the slot yet, and write there what the move brings.
   */
  readonly #keys: readonly [string, string];
  readonly #clock: Clock | null;
  readonly #log: Logger;
  #trouble: string | null = null;

  constructor({ connection, prefix, clock, log }: ScriptRunnerOptions) {
    this.#connection = connection;
    this.#keys = [prefix + layout, `${prefix}${layout}meta`];
    this.#clock = clock ?? null;
    this.#log = log;
    // Whether it serves is found out anew.
    connection.onReturn(() => this.#note(null));
  }

  /** For durations that a script compares with its own time: by the same clock in tests. */
  elapsedMs(): number {
    return this.#clock === null ? performance.now() : this.#clock.nowMs();
  }

  trouble(): string | null {
    return this.#connection.trouble() ?? this.#trouble;
  }

  /** Throws `RedisAwayError` when Redis can't be used, and anything else only for a fault of ours. */
  async run(script: Script, ...values: readonly Argument[]): Promise<Reply> {
    try {
      const reply = await this.#evaluate(script, values);
      this.#note(null);
      return reply;
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      const lost = /PARTLOST (.*?)(?: script: .*)?$/.exec(error.message)?.[1];
      if (lost !== undefined) {
        this.#log.warn(
          { part: lost },
          'a part of the ready queue is missing in Redis; it is filled anew',
        );
        throw new PartLostError(lost, { cause: error });
      }
      if (!isAway(error)) {
        throw new Error(`the script ${script.name} failed: ${error.message}`, { cause: error });
      }
      this.#note(error);
      throw new RedisAwayError(error.message, { cause: error });
    }
  }

  /** All names of our keys, some at a time. */
  async *keys(): AsyncGenerator<readonly string[]> {
    const { client } = this.#connection;
    const match = `${this.#keys[0].replace(/[\\*?[\]]/g, '\\$&')}*`;
    for (const node of client instanceof Cluster ? client.nodes('master') : [client]) {
      let cursor = '0';
      do {
        const [next, found] = await this.#search(node, cursor, match);
        yield found;
        cursor = next;
      } while (cursor !== '0');
    }
  }

  async #search(node: Redis, cursor: string, match: string): Promise<[string, string[]]> {
    try {
      return await node.scan(cursor, 'MATCH', match, 'COUNT', 1_000);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      this.#note(error);
      throw new RedisAwayError(error.message, { cause: error });
    }
  }

  async #evaluate({ sha, text }: Script, values: readonly Argument[]): Promise<Reply> {
    const { client } = this.#connection;
    const now = this.#clock === null ? '' : this.#clock.nowMs();
    const rest = [...this.#keys, now, ...values];
    try {
      return (await client.evalsha(sha, 2, ...rest)) as Reply;
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return (await client.eval(text, 2, ...rest)) as Reply;
    }
  }

  /** A lost connection is told by the connection itself; what else keeps Redis from serving is not. */
  #note(error: Error | null): void {
    const wasTold = this.#trouble !== null;
    this.#trouble = error === null ? null : troubleOf(error);
    if (error === null) {
      if (wasTold) this.#log.info('Redis serves the ready queue again');
    } else if (!wasTold && isAnswer(error)) {
      this.#log.warn({ reason: error.message }, 'Redis does not serve the ready queue');
    }
  }
}

function troubleOf(error: Error): string {
  return isRefusal(error)
    ? `Redis refuses: ${error.message}. ${rightsAdvice}`
    : `Redis can't be used: ${error.message}`;
}

/**
 * An answer of Redis that says "not now": it loads its data, is a replica, has lost its cluster, moves our
 * slot to another node, is full, or is busy. Redis 6 puts what went wrong inside a script in the middle of the message.
 */
const notNow =
  /\b(READONLY|LOADING|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|MOVED|ASK|BUSY|NOREPLICAS|MISCONF|OOM|UNKILLABLE|non local key)\b/;

function isAway(error: Error): boolean {
  // Whatever is not an answer of Redis is the lack of one: closed, refused, timed out.
  return !isAnswer(error) || notNow.test(error.message) || isRefusal(error);
}

function isAnswer({ name }: Error): boolean {
  return name === 'ReplyError';
}
