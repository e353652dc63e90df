import { join } from 'node:path';

export interface Contender {
  readonly name: string;
  readonly title: string;
  /** The limit is nobody: what there is to be had of Postgres. */
  readonly side: 'peer' | 'sluice' | 'limit';
  /** What runs it, and which of its kinds. */
  readonly module: string;
  readonly variant?: string;
  /** On the Redis that writes each command to disk before it answers; otherwise on one that keeps nothing. */
  readonly durableRedis?: boolean;
}

const peers = join(import.meta.dirname, '../peers');
const sluice = join(import.meta.dirname, 'sluice');

export const contenders: readonly Contender[] = [
  {
    name: 'bullmq',
    title: 'BullMQ',
    side: 'peer',
    module: join(peers, 'bullmq.mjs'),
  },
  {
    name: 'bullmq-durable',
    title: 'BullMQ, durable',
    side: 'peer',
    module: join(peers, 'bullmq.mjs'),
    durableRedis: true,
  },
  {
    name: 'graphile-worker',
    title: 'graphile-worker',
    side: 'peer',
    module: join(peers, 'graphile-worker.mjs'),
    variant: 'plain',
  },
  {
    name: 'graphile-local-queue',
    title: 'graphile-worker, local queue',
    side: 'peer',
    module: join(peers, 'graphile-worker.mjs'),
    variant: 'local-queue',
  },
  {
    name: 'pg-boss',
    title: 'pg-boss',
    side: 'peer',
    module: join(peers, 'pg-boss.mjs'),
  },
  {
    name: 'sluice-embedded',
    title: 'Sluice, embedded',
    side: 'sluice',
    module: join(sluice, 'in-process.mjs'),
    variant: 'embedded',
  },
  {
    name: 'sluice-postgres',
    title: 'Sluice, Postgres',
    side: 'sluice',
    module: join(sluice, 'in-process.mjs'),
    variant: 'postgres',
  },
  {
    name: 'sluice-redis',
    title: 'Sluice, Postgres + Redis',
    side: 'sluice',
    module: join(sluice, 'in-process.mjs'),
    variant: 'redis',
  },
  {
    name: 'sluice-http',
    title: 'Sluice, over HTTP',
    side: 'sluice',
    module: join(sluice, 'http.mjs'),
  },
  {
    name: 'bare-postgres',
    title: 'Postgres alone, the limit',
    side: 'limit',
    module: join(import.meta.dirname, 'bare-postgres.mjs'),
  },
];

export function titleOf(name: string): string {
  return contenders.find((contender) => contender.name === name)?.title ?? name;
}

/** Whoever comes after another finds what that one left in caches: each round begins with the next. */
export function orderOf<Item>(items: readonly Item[], round: number): readonly Item[] {
  const first = round % Math.max(1, items.length);
  return [...items.slice(first), ...items.slice(0, first)];
}
