import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';
import { runOn } from './services/postgres-statement.js';

export interface TestRole {
  readonly name: string;
  /** The database of `databaseUrl`, as this role. */
  readonly url: string;
  /** `alter role … set …` for new connections. */
  set(settings: Readonly<Record<string, string>>): Promise<void>;
  drop(): Promise<void>;
}

/** A role that may log in and nothing else. */
export async function createTestRole(databaseUrl: string): Promise<TestRole> {
  const serverUrl = inject('postgresUrl');
  const name = `role_${randomBytes(6).toString('hex')}`;
  await runOn(serverUrl, `create role ${name} login`);
  const url = new URL(databaseUrl);
  url.username = name;
  url.password = '';
  return {
    name,
    url: url.href,
    set: async (settings) => {
      const statements = Object.entries(settings).map(
        ([setting, value]) => `alter role ${name} set ${setting} = ${value};`,
      );
      await runOn(serverUrl, `alter role ${name} reset all; ${statements.join(' ')}`);
    },
    drop: async () => {
      await runOn(databaseUrl, `drop owned by ${name} cascade`);
      await runOn(serverUrl, `drop role ${name}`);
    },
  };
}
