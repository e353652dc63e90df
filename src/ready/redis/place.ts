import { randomUUID } from 'node:crypto';
import type { RedisConnection } from './connection.js';

/**
 * Names this very Redis, whatever address leads to it. Kept in it, so that a flush gives it another
 * name: whoever compares names has to allow for that. Null: it does not answer.
 */
export async function findPlace(
  { client }: RedisConnection,
  prefix: string,
): Promise<string | null> {
  const key = `${prefix}place`;
  try {
    await client.set(key, randomUUID(), 'NX');
    return await client.get(key);
  } catch {
    return null;
  }
}
