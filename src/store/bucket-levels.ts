import { column } from './columns.js';
import type { Instant, Queryable } from './database.js';

export interface SavedLevel {
  readonly bucket: string;
  readonly tokens: number;
  /** Since it was so, by the database's clock. */
  readonly ageMs: number;
  /** Nothing was granted after it. */
  readonly isFinal: boolean;
}

/**
 * What the buckets held `ageMs` ago. Servers that share a bucket may write in another order than
 * they looked: an older look never replaces a newer one. Sorted, so that two of them wait for each
 * other in one direction.
 */
export async function saveLevels(
  db: Queryable,
  levels: readonly Pick<SavedLevel, 'bucket' | 'tokens'>[],
  ageMs: number,
  isFinal: boolean,
  now: Instant,
): Promise<void> {
  await db.query(
    `insert into sluice.bucket_levels as saved (bucket, tokens, at, is_final)
     select bucket, tokens,
       coalesce($5::timestamptz, now()) - $3::float8 * interval '1 ms', $4::boolean
     from unnest($1::text[], $2::float8[]) as level (bucket, tokens)
     order by bucket collate "C"
     on conflict (bucket) do update set
       tokens = excluded.tokens, at = excluded.at, is_final = excluded.is_final
     where saved.at <= excluded.at`,
    [
      column(levels, (level) => level.bucket),
      column(levels, (level) => level.tokens),
      ageMs,
      isFinal,
      now,
    ],
  );
}

/** Of buckets that nobody has used yet: what is there already stays. */
export async function startLevels(
  db: Queryable,
  levels: readonly Pick<SavedLevel, 'bucket' | 'tokens'>[],
  now: Instant,
): Promise<void> {
  await db.query(
    `insert into sluice.bucket_levels (bucket, tokens, at)
     select bucket, tokens, coalesce($3::timestamptz, now())
     from unnest($1::text[], $2::float8[]) as level (bucket, tokens)
     order by bucket collate "C"
     on conflict (bucket) do nothing`,
    [column(levels, (level) => level.bucket), column(levels, (level) => level.tokens), now],
  );
}

export async function findLevels(db: Queryable, now: Instant): Promise<SavedLevel[]> {
  const rows = await db.query<{
    bucket: string;
    tokens: number;
    age_ms: number;
    is_final: boolean;
  }>(
    `select bucket, tokens, is_final,
       date_part('epoch', coalesce($1::timestamptz, now()) - at) * 1000 as age_ms
     from sluice.bucket_levels order by bucket`,
    [now],
  );
  return rows.map((row) => ({
    bucket: row.bucket,
    tokens: row.tokens,
    ageMs: row.age_ms,
    isFinal: row.is_final,
  }));
}

/** After the last save of the only process that grants, when it grants no more. */
export async function closeLevels(db: Queryable): Promise<void> {
  await db.query('update sluice.bucket_levels set is_final = true where not is_final');
}

/** Before anything is granted again: from then on what was saved may not be the last. */
export async function reopenLevels(db: Queryable): Promise<void> {
  await db.query('update sluice.bucket_levels set is_final = false where is_final');
}

/** How many went: those of limits that nobody uses any more. */
export async function purgeLevels(
  db: Queryable,
  olderThanMs: number,
  now: Instant,
): Promise<number> {
  const rows = await db.query(
    `delete from sluice.bucket_levels
     where at < coalesce($2::timestamptz, now()) - $1::float8 * interval '1 ms'
     returning bucket`,
    [olderThanMs, now],
  );
  return rows.length;
}
