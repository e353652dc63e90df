import {
  openRedis,
  RedisRefusedError,
  type RedisConnection,
} from '../../ready/redis/connection.js';
import { findMissingRight, rightsAdvice } from '../../ready/redis/rights.js';
import {
  isTooOld,
  mayEvict,
  neededVersion,
  readClockMs,
  readServerFacts,
} from '../../ready/redis/server-facts.js';
import { hidePassword } from '../../runtime/hide-password.js';
import { silentLog } from '../../runtime/log.js';
import { failed, ok, warning, type Check } from './check.js';

/** Before there is a schema, the id that keys begin with is not known. */
const anyPrefix = 'sluice:{doctor}:';

export async function checkRedis(url: string, prefix = anyPrefix): Promise<readonly Check[]> {
  let connection: RedisConnection;
  try {
    connection = await openRedis(url, silentLog, prefix);
  } catch (error) {
    if (!(error instanceof RedisRefusedError)) throw error;
    return [failed('Redis', error.message, error.advice)];
  }
  try {
    return await checkConnection(connection, url, prefix);
  } finally {
    await connection.close();
  }
}

async function checkConnection(
  connection: RedisConnection,
  url: string,
  prefix: string,
): Promise<readonly Check[]> {
  const trouble = connection.trouble();
  if (trouble?.includes(rightsAdvice) === true) {
    return [
      ok('Redis', hidePassword(url)),
      failed('Redis rights', trouble.replace(` ${rightsAdvice}`, ''), rightsAdvice),
    ];
  }
  if (trouble !== null) {
    return [failed('Redis', trouble, 'Check the address, the password and that Redis runs.')];
  }
  const facts = await readServerFacts(connection.client);
  return [
    ok('Redis', hidePassword(url)),
    await checkRights(connection, prefix),
    checkVersion(unique(facts.map(({ version }) => version))),
    checkPolicy(unique(facts.map(({ evictionPolicy }) => evictionPolicy))),
    await checkClock(connection),
  ];
}

/** Runs every command that the scripts use, publishes and subscribes. */
async function checkRights({ client }: RedisConnection, prefix: string): Promise<Check> {
  const missing = await findMissingRight(client, prefix);
  return missing === null
    ? ok('Redis rights', 'all that is needed')
    : failed('Redis rights', missing, rightsAdvice);
}

function checkVersion(versions: readonly string[]): Check {
  return versions.some(isTooOld)
    ? failed('Redis version', versions.join(', '), `Upgrade to ${neededVersion} or later.`)
    : ok('Redis version', versions.join(', '));
}

function checkPolicy(policies: readonly string[]): Check {
  const advice = 'Set maxmemory-policy to noeviction: what is evicted has to be found again.';
  return policies.some(mayEvict)
    ? warning('Redis eviction', policies.join(', '), advice)
    : ok('Redis eviction', policies.join(', '));
}

/** Only told: nothing compares the clock of Redis with any other. */
async function checkClock({ client }: RedisConnection): Promise<Check> {
  const sentAt = Date.now();
  const nowMs = await readClockMs(client);
  return ok('Redis clock skew', `${Math.round(nowMs - (sentAt + Date.now()) / 2)} ms`);
}

function unique(values: readonly string[]): readonly string[] {
  return [...new Set(values)];
}
