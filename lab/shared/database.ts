import { randomBytes } from 'node:crypto';
import { Client, Pool } from 'pg';

/** A database of its own for a cluster, and a way to look into it. */
export class LabDatabase {
  readonly url: string;
  readonly #serverUrl: string;
  readonly #name: string;
  /** One connection, and another when that one broke. */
  readonly #pool: Pool;

  private constructor(serverUrl: string, name: string) {
    const url = new URL(serverUrl);
    url.pathname = `/${name}`;
    this.url = url.href;
    this.#serverUrl = serverUrl;
    this.#name = name;
    this.#pool = new Pool({ connectionString: this.url, max: 1 });
    this.#pool.on('error', () => undefined);
  }

  static async create(serverUrl: string): Promise<LabDatabase> {
    const name = `lab_${randomBytes(4).toString('hex')}`;
    await runOn(serverUrl, `create database ${name}`);
    return new LabDatabase(serverUrl, name);
  }

  async query<Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return (await this.#pool.query<Row>(text, [...values])).rows;
  }

  async drop(): Promise<void> {
    await this.#pool.end();
    await runOn(this.#serverUrl, `drop database ${this.#name} with (force)`);
  }
}

async function runOn(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
