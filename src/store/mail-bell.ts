import type pg from 'pg';

import { translate } from './failures.js';
import { mailChannel } from './mail.js';
import { PgHosts } from './pg-hosts.js';
import { findPooling } from './pooling.js';

export interface MailBellOptions {
  readonly url: string;
  readonly recipient: string;
  /** There may be mail. */
  readonly ring: () => void;
  /** The connection was lost, or could not be made; another one is tried. */
  readonly onError: (error: Error) => void;
}

const connectMs = 10_000;
const retryMs = 500;
/** A connection that fell silent is found so soon: until then mail is found by the slow look alone. */
const probeMs = 5_000;

/**
 * One session connection that listens for mail. After a lost connection it connects again and rings, since mail may have
 * come meanwhile.
 */
export class MailBell {
  readonly #options: MailBellOptions;
  readonly #hosts: PgHosts;
  #client: pg.Client | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;
  #isHanging = false;

  constructor(options: MailBellOptions) {
    this.#options = options;
    this.#hosts = new PgHosts(options.url, connectMs);
  }

  /** False: a pooler lends the connection out between transactions, where LISTEN can't work. */
  async hang(): Promise<boolean> {
    const client = await this.#connect();
    if (await isShared(client, this.#options.url)) {
      this.#isClosed = true;
      await this.#drop(client);
      return false;
    }
    await this.#listen(client);
    return true;
  }

  /** Whether mail is told at once; while it is not, somebody has to look for it. */
  get isHanging(): boolean {
    return this.#isHanging;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#client !== null) await this.#drop(this.#client);
  }

  /** Tries each host once. */
  async #connect(): Promise<pg.Client> {
    for (let tries = 1; ; tries++) {
      const host = this.#hosts.preferred;
      const HostClient = this.#hosts.clientClass();
      const client = new HostClient({ application_name: 'sluice', keepAlive: true });
      client.on('error', (error: Error) => this.#lost(client, error));
      try {
        await client.connect();
        await refuseStandby(client);
        this.#hosts.succeeded(client);
        return client;
      } catch (error) {
        client.end().catch(() => undefined);
        this.#hosts.failed(host, error);
        if (tries >= this.#hosts.count) throw translate(error);
      }
    }
  }

  async #listen(client: pg.Client): Promise<void> {
    client.on('notification', () => this.#options.ring());
    client.on('end', () => this.#lost(client, new Error('the connection for mail was closed')));
    this.#client = client;
    await client.query(`listen ${client.escapeIdentifier(mailChannel(this.#options.recipient))}`);
    this.#isHanging = true;
    this.#options.ring();
    this.#probeLater(client);
  }

  #probeLater(client: pg.Client): void {
    this.#after(probeMs, async () => {
      await withinMs(client.query('select 1'), probeMs);
      this.#probeLater(client);
    });
  }

  #lost(client: pg.Client, error: Error): void {
    if (this.#client !== client || this.#isClosed) return;
    this.#client = null;
    this.#isHanging = false;
    this.#options.onError(error);
    void this.#drop(client);
    this.#after(retryMs, () => this.#again());
  }

  async #again(): Promise<void> {
    await this.#listen(await this.#connect());
  }

  #after(delayMs: number, work: () => Promise<void>): void {
    if (this.#isClosed) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      work().catch((error: unknown) => {
        const failure = error instanceof Error ? error : new Error(String(error));
        if (this.#client === null) this.#after(retryMs, () => this.#again());
        else this.#lost(this.#client, failure);
      });
    }, delayMs);
  }

  /** Nobody waits for the answer: a server that hangs would keep us from closing. */
  async #drop(client: pg.Client): Promise<void> {
    const ended = client.end().catch(() => undefined);
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 1_000).unref())]);
  }
}

/** Nobody can listen there. */
async function refuseStandby(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ standby: boolean }>(
    'select pg_is_in_recovery() as standby',
  );
  if (rows[0]?.standby === true) throw new Error('the host is a standby, where LISTEN cannot work');
}

/** A pooler names a process of its own, not that of Postgres. In session mode the connection is ours nevertheless. */
async function isShared(client: pg.Client, url: string): Promise<boolean> {
  const named = 'processID' in client ? client.processID : null;
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  if (rows[0]?.pid === named) return false;
  return (await findPooling(url)) === 'transaction';
}

async function withinMs(answer: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the connection for mail is silent')), ms);
  });
  try {
    await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
    answer.catch(() => undefined);
  }
}
