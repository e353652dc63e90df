-- The living: small rows, whatever the history. A status change never rewrites a prompt.
-- Indexed texts are compared by their bytes, not by the rules of a language: an index does not break
-- when an upgrade of the system changes those rules, and the order is the same everywhere.
create sequence sluice.task_seq;

create table sluice.tasks (
  id uuid primary key,
  -- Insert order: all rows of one statement share one now().
  seq bigint not null default nextval('sluice.task_seq'),
  queue text collate "C" not null,
  task_type text collate "C" not null,
  -- Sorted, without duplicates: queue, task_type and capabilities together are the lane.
  capabilities text[] collate "C" not null default '{}',
  -- 0 high, 1 medium, 2 low.
  priority smallint not null,
  status text collate "C" not null,
  -- What a pending task waits for.
  waits_for text collate "C",
  created_at timestamptz not null,
  eligible_at timestamptz not null,
  -- When it may next be taken: asked for, or the end of its backoff.
  run_at timestamptz,
  queued_at timestamptz,
  assigned_at timestamptz,
  started_at timestamptz,
  -- When the present attempt is given up: not started in time, or timed out.
  lapses_at timestamptz,
  ended_at timestamptz,
  dispatch_deadline_seconds integer,
  -- eligible_at + dispatch_deadline_seconds.
  expires_at timestamptz,
  timeout_seconds integer not null,
  max_retries smallint not null,
  retry_count smallint not null default 0,
  attempt integer not null default 0,
  deferrals smallint not null default 0,
  -- Times it was assigned and never started.
  returns smallint not null default 0,
  lease uuid,
  worker_id uuid,
  workflow_id text collate "C",
  -- What its failure does to its workflow.
  halts_workflow boolean not null default true,
  idempotency_key text,
  cost json,
  user_id text,
  tags text[] not null default '{}',
  trace_id text,
  progress_percent real,
  progress_message text,
  error json,
  -- Attempts that went wrong or went back; a first-try success writes nothing here.
  past_attempts json[] not null default '{}',

  constraint tasks_priority_known check (priority between 0 and 2),
  constraint tasks_status_living check (
    status in ('pending', 'queued', 'assigned', 'executing', 'dead_letter', 'failed')
  ),
  constraint tasks_pending_waits check ((status = 'pending') = (waits_for is not null)),
  constraint tasks_waits_for_known check (waits_for in ('room', 'time', 'workflow')),
  constraint tasks_time_wait_has_time check (waits_for is distinct from 'time' or run_at is not null),
  constraint tasks_queued_has_instant check (status <> 'queued' or queued_at is not null),
  constraint tasks_leased_exactly_while_held check (
    (status in ('assigned', 'executing')) = (lease is not null)
    and (lease is null) = (worker_id is null)
    and (lease is null) = (assigned_at is null)
    and (lease is null) = (lapses_at is null)
  ),
  constraint tasks_executing_has_started check ((status = 'executing') = (started_at is not null)),
  constraint tasks_ended_exactly_at_end check (
    (status in ('dead_letter', 'failed')) = (ended_at is not null)
  ),
  constraint tasks_expiry_has_deadline check (
    (expires_at is null) = (dispatch_deadline_seconds is null)
  ),
  constraint tasks_counts_not_negative check (
    retry_count >= 0 and attempt >= 0 and deferrals >= 0 and returns >= 0
  )
);

-- Feeder, walk over the queued, and counts: by lane and priority, oldest first. One index serves
-- both states, so that a task that is inserted queued pays for one index entry besides its key.
create index tasks_line on sluice.tasks
  (queue, task_type, capabilities, priority, status, eligible_at, seq)
  where status = 'queued' or waits_for = 'room';

create index tasks_timed on sluice.tasks (run_at) where waits_for = 'time';

-- Sweeper and heartbeats: what a worker holds, and what of it is overdue.
create index tasks_held on sluice.tasks (worker_id, lapses_at) where worker_id is not null;

create index tasks_expiring on sluice.tasks (expires_at)
  where expires_at is not null and status in ('pending', 'queued');

create index tasks_workflow on sluice.tasks (workflow_id, seq) where workflow_id is not null;

-- Of a workflow one member at a time is past its turn: in line, or with a worker.
create unique index tasks_workflow_one_out on sluice.tasks (workflow_id)
  where workflow_id is not null
    and (status in ('queued', 'assigned', 'executing') or waits_for in ('room', 'time'));

create index tasks_ended on sluice.tasks (id) where status in ('dead_letter', 'failed');

-- Written once at submit, never moved; json, not jsonb: a prompt may hold what jsonb refuses
-- (\u0000, lone surrogates), and keeps its numbers and its key order.
create table sluice.task_inputs (
  task_id uuid primary key,
  parameters json not null
) partition by range (task_id);

-- Completed and cancelled tasks. By the day they ended: retention counts from the end.
create table sluice.task_history (
  id uuid not null,
  seq bigint not null,
  queue text collate "C" not null,
  task_type text collate "C" not null,
  capabilities text[] collate "C" not null,
  priority smallint not null,
  status text collate "C" not null,
  created_at timestamptz not null,
  eligible_at timestamptz not null,
  run_at timestamptz,
  queued_at timestamptz,
  assigned_at timestamptz,
  started_at timestamptz,
  ended_at timestamptz not null,
  dispatch_deadline_seconds integer,
  timeout_seconds integer not null,
  max_retries smallint not null,
  retry_count smallint not null,
  attempt integer not null,
  deferrals smallint not null,
  returns smallint not null,
  -- The lease it was completed with: the same report again is answered the same way.
  lease uuid,
  worker_id uuid,
  workflow_id text collate "C",
  halts_workflow boolean not null,
  idempotency_key text,
  cost json,
  user_id text,
  tags text[] not null,
  trace_id text,
  progress_percent real,
  progress_message text,
  result json,
  usage json,
  execution_seconds real,
  error json,
  past_attempts json[] not null,
  primary key (id, ended_at),
  constraint task_history_status_ended check (status in ('completed', 'cancelled'))
) partition by range (ended_at);

create table sluice.idempotency_keys (
  scope text collate "C" not null,
  key text collate "C" not null,
  task_id uuid not null,
  -- Of task type, queue and parameters.
  fingerprint bytea not null,
  expires_at timestamptz not null,
  primary key (scope, key)
);

create index idempotency_keys_expiring on sluice.idempotency_keys (expires_at);

-- A row to serialise on: submitting to a workflow and finishing a member of it.
create table sluice.workflows (
  id text collate "C" primary key,
  -- A member that was cancelled while it ran keeps its place until its worker let go of it or its
  -- attempt lapsed: two members never run at once.
  held_task uuid,
  held_lease uuid,
  held_worker_id uuid,
  held_since timestamptz,
  held_until timestamptz,
  constraint workflows_held_as_a_whole check (
    num_nulls(held_task, held_lease, held_worker_id, held_since, held_until) in (0, 5)
  )
);

create index workflows_held on sluice.workflows (held_until) where held_task is not null;

create table sluice.queues (
  name text collate "C" primary key,
  -- 0: named by a task and never configured.
  version bigint not null default 1,
  changed_at timestamptz not null default now(),
  limits json not null default '[]',
  max_concurrency integer,
  max_ready integer not null default 10000,
  max_active integer,
  paused boolean not null default false,
  paused_until timestamptz,
  low_to_medium_ms bigint default 600000,
  low_to_high_ms bigint default 1800000,
  medium_to_high_ms bigint default 1200000,
  created_at timestamptz not null default now(),
  constraint queues_bounds check (
    (max_concurrency is null or max_concurrency >= 1)
    and max_ready >= 1
    and (max_active is null or max_active >= 1)
  ),
  constraint queues_paused_until check (paused or paused_until is null)
);

-- What others changed, a moment ago: servers ask every few seconds, whatever the number of queues.
create index queues_changed on sluice.queues (changed_at) where version > 0;

create table sluice.limits (
  name text collate "C" primary key,
  version bigint not null default 1,
  unit text not null,
  rate bigint not null,
  per_seconds integer not null,
  burst bigint,
  constraint limits_bounds check (
    rate >= 1 and per_seconds >= 1 and (burst is null or burst >= 1)
  )
);

create table sluice.workers (
  id uuid primary key,
  name text,
  host text,
  version text,
  capabilities text[] not null default '{}',
  -- Null: every type, every queue.
  task_types text[],
  queues text[],
  capacity integer not null,
  status text not null default 'active',
  drain_requested boolean not null default false,
  current_load integer not null default 0,
  memory_usage double precision,
  event_loop_delay_ms double precision,
  health json,
  registered_at timestamptz not null,
  last_heartbeat_at timestamptz not null,
  constraint workers_status_known check (status in ('active', 'draining', 'dead'))
);

create index workers_living on sluice.workers (last_heartbeat_at) where status <> 'dead';

-- Who serves from a ready queue in memory: one process at a time, by a lease and not by a
-- session lock, which PgBouncer would break.
create table sluice.serving (
  only_row boolean primary key default true check (only_row),
  holder uuid not null,
  ready_queue text not null check (ready_queue in ('memory', 'redis')),
  renewed_at timestamptz not null
);

-- The partition that holds the ids of that day: a UUIDv7 begins with its milliseconds.
create function sluice.first_id_of(day date) returns uuid
language sql immutable as $$
  select (lpad(to_hex((extract(epoch from day) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

-- By a query and not by to_regclass, which may answer from before the lock was granted.
create function sluice.has_table(name text) returns boolean
language sql volatile as $$
  select exists (
    select from pg_catalog.pg_class
    where relname = name and relnamespace = 'sluice'::regnamespace
  )
$$;

create function sluice.ensure_partition(
  parent text, day date, lower_bound text, upper_bound text
) returns void
language plpgsql as $$
declare
  child text := parent || '_' || to_char(day, 'YYYYMMDD');
begin
  if sluice.has_table(child) then
    return;
  end if;
  perform pg_advisory_xact_lock(hashtext('sluice.ensure_partition'));
  if sluice.has_table(child) then
    return;
  end if;
  -- Made apart, then attached: "partition of" would lock the parent against every read and write,
  -- and so wait for a user's open transaction while everybody else waits for it.
  execute format('create table sluice.%I (like sluice.%I including all)', child, parent);
  execute format(
    'alter table sluice.%I attach partition sluice.%I for values from (%L) to (%L)',
    parent, child, lower_bound, upper_bound
  );
end
$$;

-- Bounds of history are days in UTC, whatever the session's time zone.
create function sluice.ensure_partitions(days_ahead integer, instant timestamptz) returns void
language plpgsql
set lock_timeout = '10s'
set timezone = 'UTC'
as $$
declare
  day date;
begin
  for day in
    select instant::date + n from generate_series(-2, days_ahead) as n
  loop
    perform sluice.ensure_partition(
      'task_inputs', day,
      sluice.first_id_of(day)::text, sluice.first_id_of(day + 1)::text
    );
    perform sluice.ensure_partition(
      'task_history', day,
      day::timestamptz::text, (day + 1)::timestamptz::text
    );
  end loop;
end
$$;
