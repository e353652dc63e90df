-- What happened, counted by queue and time over all servers. `counts` is an array whose positions are named in
-- src/domain/counters.ts. They are only ever appended to, so rows of an earlier version are shorter.
create table sluice.counters (
  -- How long a row counts, from `at` on: 5, 60 or 3600 seconds. Rows are summed up to the next step as they age.
  step_seconds integer not null,
  at timestamptz not null,
  -- Empty: the sum over all queues.
  queue text collate "C" not null,
  counts bigint[] not null,
  primary key (step_seconds, at, queue),
  constraint counters_step_known check (step_seconds in (5, 60, 3600))
);

-- For the history of one queue.
create index counters_queue on sluice.counters (queue, step_seconds, at);

-- The last write of each process that counts, so that a write whose answer was lost is not added twice.
create table sluice.counting_processes (
  id uuid primary key,
  sequence bigint not null,
  written_at timestamptz not null
);

create function sluice.add_counts(a bigint[], b bigint[]) returns bigint[]
language sql immutable parallel safe as $$
  select array_agg(coalesce(x, 0) + coalesce(y, 0) order by position)
  from unnest(a, b) with ordinality as pair (x, y, position)
$$;

create aggregate sluice.sum_counts(bigint[]) (sfunc = sluice.add_counts, stype = bigint[]);
