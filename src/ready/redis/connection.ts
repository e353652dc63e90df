import type { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { hidePassword } from '../../runtime/hide-password.js';
import type { Logger } from '../../runtime/log.js';
import { Loop } from '../../runtime/loop.js';
import { parseRedisUrl, redisUrlExamples } from '../../runtime/redis-url.js';
import {
  createClient,
  createSubscriber,
  findNodes,
  patienceMs,
  type RedisClient,
} from './client.js';
import { findMissingRight, isRefusal, rightsAdvice } from './rights.js';
import { isTooOld, mayEvict, neededVersion, readServerFacts } from './server-facts.js';

export interface RedisConnection {
  /** For commands and scripts. Fails fast while away: nothing is queued, nothing is sent twice. */
  readonly client: RedisClient;
  /** For pub/sub. Forgets its subscriptions when it is lost: subscribe at every `ready`. */
  subscriber(): RedisClient;
  /** Null while it answers; else why it does not, for people. */
  trouble(): string | null;
  /** Called after every connection that is good to use; answers with how to stop listening. */
  onReturn(listener: () => void): () => void;
  close(): Promise<void>;
}

/** This Redis must not be used as it is. */
export class RedisRefusedError extends Error {
  override readonly name = 'RedisRefusedError';
  readonly advice: string;

  constructor(fault: string, advice: string) {
    super(`${fault}. ${advice}`);
    this.advice = advice;
  }
}

const upgrade = `It must be ${neededVersion} or later.`;
const stopEviction =
  'Set maxmemory-policy to noeviction: "redis-cli config set maxmemory-policy noeviction", and the same in ' +
  'redis.conf or in the settings of your provider.';

const otherDatabase =
  'Raise "databases" in its configuration, or end REDIS_URL with another number.';

const lookEveryMs = 5_000;
const lookAgainMs = 200;

/**
 * Resolves also when Redis is away, and goes on trying. Throws when it can't be used at all. `prefix`: of the
 * keys and channels for which our rights are tried.
 */
export async function openRedis(
  url: string,
  log: Logger,
  prefix = 'sluice:{rights}:',
): Promise<RedisConnection> {
  const address = parseRedisUrl(url);
  if (address === null) throw new Error(`A Redis URL must be like ${redisUrlExamples}.`);
  const ours = { name: hidePassword(url), prefix, db: address.db };
  const connection = new WatchedConnection(createClient(address), ours, log);
  await Promise.race([connection.judged, delay(2 * patienceMs, undefined, { ref: false })]);
  const refusal = connection.refusal();
  if (refusal === null) return connection;
  await connection.close();
  throw refusal;
}

interface Ours {
  /** For people. */
  readonly name: string;
  readonly prefix: string;
  readonly db: number;
}

/** Tells for itself whether Redis answers, so that nobody has to find out by failing. */
class WatchedConnection implements RedisConnection {
  readonly client: RedisClient;
  /** Resolves at the first word about it, good or bad. */
  readonly judged: Promise<void>;
  #judge: () => void = () => undefined;
  readonly #ours: Ours;
  readonly #log: Logger;
  readonly #listeners = new Set<() => void>();
  readonly #watch: Loop;
  #subscriber: RedisClient | null = null;
  #trouble: string | null;
  #refusal: RedisRefusedError | null = null;
  #wasWelcome = false;
  #lossIsTold = false;
  #evictionIsTold = false;
  #closing: Promise<void> | null = null;

  constructor(client: RedisClient, ours: Ours, log: Logger) {
    this.client = client;
    this.#ours = ours;
    this.#log = log;
    this.#trouble = `Redis at ${ours.name} has not answered yet`;
    this.judged = new Promise((resolve) => {
      this.#judge = resolve;
    });
    this.#watch = new Loop({
      tick: () => this.#look(),
      onError: (error) => {
        log.error({ err: error }, 'the watch over Redis failed');
      },
    });
    this.#listenTo(client);
    this.#watch.start();
  }

  subscriber(): RedisClient {
    if (this.#subscriber === null) {
      this.#subscriber = createSubscriber(this.client);
      // Whatever ails it ails the other connection too, which tells.
      (this.#subscriber as EventEmitter).on('error', () => undefined);
    }
    return this.#subscriber;
  }

  trouble(): string | null {
    return this.#trouble;
  }

  refusal(): RedisRefusedError | null {
    return this.#refusal;
  }

  onReturn(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#listeners.clear();
    this.#trouble = 'The connection to Redis is closed';
    const watchEnded = this.#watch.stop();
    const subscriber = this.#subscriber;
    if (subscriber !== null && subscriber !== this.client) await end(subscriber);
    await end(this.client);
    await watchEnded;
  }

  #listenTo(client: EventEmitter): void {
    client.on('ready', () => this.#watch.wake());
    client.on('error', (error: Error) => this.#lose(error));
    client.on('close', () => {
      if (this.#trouble === null) this.#lose(new Error('the connection was closed'));
    });
    // In a cluster one node can be gone while the whole stays connected.
    client.on('-node', (node: Redis) => {
      if (node.options.readOnly !== true && this.#trouble === null) {
        this.#lose(new Error('a node of the cluster is gone'));
      }
      this.#watch.wake();
    });
  }

  async #look(): Promise<number> {
    if (this.client.status !== 'ready') return lookEveryMs;
    try {
      if (this.#trouble !== null) await this.#tryOut();
      const facts = await readServerFacts(this.client);
      const old = facts.find(({ version }) => isTooOld(version));
      const evicting = facts.find(({ evictionPolicy }) => mayEvict(evictionPolicy));
      if (old !== undefined) this.#refuse(`${old.version} is too old`, upgrade);
      else if (evicting !== undefined && !this.#wasWelcome) {
        this.#refuse(evictionFault(evicting.evictionPolicy), stopEviction);
      } else this.#welcome(evicting);
      await this.#pingSubscriber();
      return lookEveryMs;
    } catch (error) {
      this.#lose(error as Error);
      return lookAgainMs;
    }
  }

  /** After every connection: the client goes on with database 0 when ours is not there. */
  async #tryOut(): Promise<void> {
    const { db, prefix } = this.#ours;
    if (db > 0) await this.client.select(db);
    const missing = await findMissingRight(this.client, prefix);
    if (missing !== null) throw new Error(missing);
    // Last: a node that is down is noticed when it is asked, and forgotten soon after.
    await findNodes(this.client);
  }

  /** It only ever listens: a dead connection looks like a quiet one until something is sent. */
  async #pingSubscriber(): Promise<void> {
    if (this.#subscriber?.status === 'ready') await this.#subscriber.ping().catch(() => undefined);
  }

  /** One that begins to evict later is used on: a server that stops would do more harm than a lost key. */
  #welcome(evicting: { readonly evictionPolicy: string } | undefined): void {
    if (this.#closing !== null || this.client.status !== 'ready') return;
    this.#wasWelcome = true;
    if (evicting !== undefined && !this.#evictionIsTold) {
      this.#evictionIsTold = true;
      this.#log.warn(
        { maxmemory_policy: evicting.evictionPolicy },
        `Redis may evict keys when its memory is full. ${stopEviction}`,
      );
    }
    if (this.#trouble === null) return;
    this.#trouble = null;
    if (this.#lossIsTold) this.#log.info({ redis: this.#ours.name }, 'Redis answers again');
    this.#lossIsTold = false;
    this.#judge();
    for (const listener of [...this.#listeners]) this.#call(listener);
  }

  #call(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      this.#log.error({ err: error }, 'a listener for the return of Redis threw');
    }
  }

  #refuse(fault: string, advice: string): void {
    this.#refusal = new RedisRefusedError(`Redis at ${this.#ours.name}: ${fault}`, advice);
    this.#tell(this.#refusal.message);
  }

  #lose(error: Error): void {
    const { name, db } = this.#ours;
    if (error.message.includes('DB index is out of range')) {
      this.#refuse(`there is no database ${db}`, otherDatabase);
    } else if (isRefusal(error)) {
      this.#tell(`Redis at ${name} refuses: ${error.message}. ${rightsAdvice}`);
    } else this.#tell(`Redis at ${name} can't be used: ${error.message}`);
  }

  #tell(trouble: string): void {
    if (this.#closing !== null) return;
    this.#trouble = trouble;
    if (!this.#lossIsTold) this.#log.warn({ reason: trouble }, 'Redis is away');
    this.#lossIsTold = true;
    this.#judge();
  }
}

function evictionFault(policy: string): string {
  return `its maxmemory-policy is ${policy}, so that it may delete parts of the ready queue when its memory is full`;
}

/** Resolves when it is gone; answers that are under way are waited for. */
async function end(client: RedisClient): Promise<void> {
  const { status } = client;
  // Between two attempts nothing is open, and nothing would tell that it ended.
  const isOpen = ['connecting', 'connect', 'ready'].includes(status);
  const ended = new Promise((resolve) => (client as EventEmitter).once('end', resolve));
  if (status === 'ready') await client.quit().catch(() => client.disconnect());
  else client.disconnect();
  if (isOpen) await Promise.race([ended, delay(patienceMs, undefined, { ref: false })]);
}
