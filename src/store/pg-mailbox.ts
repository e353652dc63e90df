import { randomUUID } from 'node:crypto';
import type { JsonValue } from '../domain/json.js';
import { silentLog, type Logger } from '../runtime/log.js';
import type { Mailbox, MailListener } from '../runtime/mailbox.js';
import type { Queryable } from './database.js';
import { translate } from './failures.js';
import { collectLetters, postLetters, type Letter, type ReceivedLetter } from './mail.js';
import { MailBell } from './mail-bell.js';

export interface PgMailboxOptions {
  readonly db: Queryable;
  readonly url: string;
  readonly log?: Logger;
}

/** A letter holds more than that only if a single message does. */
const letterChars = 256_000;
/** Posted by one statement. */
const statementChars = 2_000_000;
/** With LISTEN: how often mail is looked for that no notification told. */
const slowLookMs = 5_000;
/** While the listening connection is down. */
const lostBellLookMs = 100;
/** Without LISTEN: at once after any traffic, and seldomer the longer there was none. */
const quickestPollMs = 5;
const slowestPollMs = 250;
const retryMs = 200;
/** For the last messages of a process that ends. */
const closeMs = 1_000;

interface Message {
  readonly to: string;
  readonly text: string;
  readonly settle: (error: Error | null) => void;
}

/**
 * The mailbox of one process: rows of `sluice.mail`. One statement posts all that gathered while the one before was under
 * way, and one collects all that came, so that under load a statement carries many messages.
 */
export class PgMailbox implements Mailbox {
  readonly address = randomUUID();
  readonly #options: PgMailboxOptions;
  readonly #log: Logger;
  readonly #bell: MailBell;
  #delivery: 'listen' | 'poll' = 'listen';
  #outbox: Message[] = [];
  #isPosting = false;
  #listener: MailListener = () => undefined;
  #collecting: Promise<void> | null = null;
  #mustCollect = false;
  #timer: NodeJS.Timeout | null = null;
  #pollMs = slowestPollMs;
  /** Rows up to here are read; see `collectLetters`. */
  #after = 0;
  /** The newest row that was read, and which one that was when it was last noted. */
  #newest = 0;
  #noted = { id: 0, atMs: -Infinity };
  #receivedMs = -Infinity;
  #isClosed = false;

  constructor(options: PgMailboxOptions) {
    this.#options = options;
    this.#log = options.log ?? silentLog;
    this.#bell = new MailBell({
      url: options.url,
      recipient: this.address,
      ring: () => this.#collectSoon(),
      onError: (error) => {
        this.#log.debug({ err: translate(error) }, 'the connection that listens for mail was lost');
        this.#lookIn(lostBellLookMs);
      },
    });
  }

  get delivery(): 'listen' | 'poll' {
    return this.#delivery;
  }

  async open(): Promise<void> {
    if (!(await this.#bell.hang())) {
      this.#delivery = 'poll';
      this.#log.info(
        'a pooler in transaction mode is in front of Postgres, where LISTEN cannot work: mail between the processes is polled for',
      );
    }
    this.#lookIn(this.#lookMs());
  }

  send(to: string, text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (error: Error | null): void => {
        if (error === null) resolve();
        else reject(error);
      };
      this.#outbox.push({ to, text, settle });
      if (this.#isPosting) return;
      this.#isPosting = true;
      // What is sent in the same turn of the event loop goes into the same statement.
      setImmediate(() => void this.#post());
    });
  }

  receive(listener: MailListener): void {
    this.#listener = listener;
  }

  /** What is in the outbox is posted first. */
  async close(): Promise<void> {
    const untilMs = performance.now() + closeMs;
    while (this.#isPosting && performance.now() < untilMs) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#bell.close();
    await this.#collecting;
  }

  async #post(): Promise<void> {
    while (this.#outbox.length > 0) {
      const batch = this.#nextBatch();
      let failure: Error | null = null;
      try {
        await postLetters(this.#options.db, this.address, lettersOf(batch));
      } catch (error) {
        failure = new Error('mail could not be posted', { cause: error });
      }
      for (const { settle } of batch) settle(failure);
      if (this.#delivery === 'poll') this.#quicken();
    }
    this.#isPosting = false;
  }

  #nextBatch(): Message[] {
    let chars = 0;
    let count = 0;
    for (const { text } of this.#outbox) {
      chars += text.length;
      if (count > 0 && chars > statementChars) break;
      count += 1;
    }
    return this.#outbox.splice(0, count);
  }

  #collectSoon(): void {
    if (this.#isClosed) return;
    this.#mustCollect = true;
    this.#collecting ??= this.#collect().finally(() => {
      this.#collecting = null;
      this.#lookIn(this.#lookMs());
    });
  }

  async #collect(): Promise<void> {
    while (this.#mustCollect && !this.#isClosed) {
      this.#mustCollect = false;
      try {
        for (const { id, sender, body } of await this.#read()) {
          this.#newest = Math.max(this.#newest, id);
          this.#deliver(sender, body);
        }
      } catch (error) {
        this.#log.debug({ err: error }, 'mail could not be collected; trying again');
        this.#pollMs = retryMs;
      }
    }
  }

  /**
   * Ids are given before rows are committed, so that a later row may be seen first: what is passed over lags behind.
   * After a crash of Postgres the table is empty and its ids begin anew: after a silence nothing is passed over.
   */
  async #read(): Promise<ReceivedLetter[]> {
    const nowMs = performance.now();
    if (nowMs - this.#noted.atMs >= slowLookMs) {
      this.#after = this.#noted.id;
      this.#noted = { id: this.#newest, atMs: nowMs };
    }
    if (nowMs - this.#receivedMs >= slowLookMs) this.#after = this.#newest = this.#noted.id = 0;
    const letters = await collectLetters(this.#options.db, this.address, this.#after);
    if (letters.length > 0) {
      this.#receivedMs = nowMs;
      this.#pollMs = quickestPollMs;
    }
    return letters;
  }

  #deliver(sender: string, body: string): void {
    try {
      this.#listener(sender, JSON.parse(body) as JsonValue[]);
    } catch (error) {
      this.#log.error({ err: error }, 'a letter could not be understood');
    }
  }

  #lookMs(): number {
    if (this.#delivery === 'poll') {
      this.#pollMs = Math.min(slowestPollMs, this.#pollMs * 2);
      return this.#pollMs;
    }
    return this.#bell.isHanging ? slowLookMs : lostBellLookMs;
  }

  #quicken(): void {
    this.#pollMs = quickestPollMs;
    this.#lookIn(quickestPollMs);
  }

  #lookIn(delayMs: number): void {
    if (this.#isClosed) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#collectSoon(), delayMs);
  }
}

/** Messages to one recipient share letters, in order. */
function lettersOf(batch: readonly Message[]): Letter[] {
  const letters: Letter[] = [];
  const open = new Map<string, { texts: string[]; chars: number }>();
  const seal = (recipient: string, texts: readonly string[]): void => {
    letters.push({ recipient, body: `[${texts.join(',')}]` });
  };
  for (const { to, text } of batch) {
    const letter = open.get(to);
    if (letter !== undefined && letter.chars + text.length <= letterChars) {
      letter.texts.push(text);
      letter.chars += text.length;
      continue;
    }
    if (letter !== undefined) seal(to, letter.texts);
    open.set(to, { texts: [text], chars: text.length });
  }
  for (const [recipient, { texts }] of open) seal(recipient, texts);
  return letters;
}
