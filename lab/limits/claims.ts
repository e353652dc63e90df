/** When Postgres gave one attempt of one task to a worker, in milliseconds of its clock. */
export interface Claim {
  readonly taskId: string;
  readonly queue: string;
  readonly attempt: number;
  readonly at: number;
}

interface Readable {
  query<Row extends object>(text: string): Promise<Row[]>;
}

/** Every attempt there was, oldest first: of tasks that ended, of those that live, and before. */
export async function readClaims(database: Readable): Promise<readonly Claim[]> {
  const rows = await database.query<ClaimRow>(claimsSql);
  return rows.map(({ id, ...claim }) => ({ taskId: id, ...claim }));
}

interface ClaimRow {
  readonly id: string;
  readonly queue: string;
  readonly attempt: number;
  readonly at: number;
}

const claimsSql = `
with every_task as (
  select id, queue, attempt, started_at, past_attempts from sluice.task_history
  union all
  select id, queue, attempt, started_at, past_attempts from sluice.tasks
), every_claim as (
  select id, queue, attempt, started_at from every_task
  union all
  select id, queue, (past->>'attempt')::integer, (past->>'started_at')::timestamptz
  from every_task, unnest(past_attempts) as past
)
select id, queue, attempt, (extract(epoch from started_at) * 1000)::float8 as at
from every_claim where started_at is not null
order by at`;

export function timesOf(claims: readonly Claim[], queue: string): readonly number[] {
  return claims.filter((claim) => claim.queue === queue).map(({ at }) => at);
}

export interface Ran {
  readonly taskId: string;
  readonly attempt: number;
  readonly receivedAt: number;
}

/** From the claim to the call at the service, for every call whose claim is known. */
export function deliveryDelays(claims: readonly Claim[], calls: readonly Ran[]): number[] {
  const claimedAt = new Map(claims.map((claim) => [attemptKey(claim), claim.at]));
  return calls.flatMap((call) => {
    const at = claimedAt.get(attemptKey(call));
    return at === undefined ? [] : [call.receivedAt - at];
  });
}

function attemptKey({ taskId, attempt }: { taskId: string; attempt: number }): string {
  return `${taskId} ${attempt}`;
}
