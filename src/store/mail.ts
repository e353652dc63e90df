import { column } from './columns.js';
import { prepared, type Queryable } from './database.js';

export interface Letter {
  readonly recipient: string;
  /** A JSON array of messages. */
  readonly body: string;
}

export interface ReceivedLetter {
  readonly id: number;
  readonly sender: string;
  readonly body: string;
}

/** Notifications name nothing but the recipient: the rows carry the data, which may be larger than a notification. */
export function mailChannel(recipient: string): string {
  return `sluice_mail_${recipient.replaceAll('-', '')}`;
}

const postSql = prepared(`
  with posted as (
    insert into sluice.mail (recipient, sender, body)
    select recipient, $1::uuid, body
    from unnest($2::uuid[], $3::text[]) with ordinality as letter (recipient, body, place)
    order by place
    returning recipient
  )
  select pg_notify('sluice_mail_' || replace(recipient::text, '-', ''), '')
  from (select distinct recipient from posted) as once`);

/** The table is unlogged and nothing else is written, so the commit waits for no disk. */
export async function postLetters(
  db: Queryable,
  sender: string,
  letters: readonly Letter[],
): Promise<void> {
  await db.query(postSql, [
    sender,
    column(letters, ({ recipient }) => recipient),
    column(letters, ({ body }) => body),
  ]);
}

/** By the primary key. Where a long transaction keeps deleted rows in the index, `after` passes over them. */
const collectSql = prepared(`
  delete from sluice.mail where recipient = $1::uuid and id > $2::bigint
  returning id, sender::text as sender, body`);

/** Reads and deletes the mail of one recipient, oldest first. */
export async function collectLetters(
  db: Queryable,
  recipient: string,
  after: number,
): Promise<ReceivedLetter[]> {
  const letters = await db.query<ReceivedLetter>(collectSql, [recipient, after]);
  return letters.sort((a, b) => a.id - b.id);
}

/** Mail that nobody collected: its recipient has ended. A living one collects within seconds. */
export async function sweepLetters(db: Queryable, olderThanMs: number): Promise<number> {
  const swept = await db.query(
    `delete from sluice.mail where sent_at < now() - $1::float8 * interval '1 ms' returning id`,
    [olderThanMs],
  );
  return swept.length;
}
