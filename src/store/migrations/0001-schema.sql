-- Tasks -----------------------------------------------------------------------------------------------------------
--
-- Living tasks: small rows, whatever the size of the history. A change of state never rewrites a prompt.
-- Indexed texts are compared by their bytes (collate "C"): an upgrade of the operating system cannot break the
-- index, and the order is the same everywhere.
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
  -- The earliest start: asked for by the submit, or the end of a backoff.
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
  -- How often it was assigned and never started.
  returns smallint not null default 0,
  lease uuid,
  worker_id uuid,
  workflow_id text collate "C",
  -- Whether its failure stops the members behind it in its workflow.
  halts_workflow boolean not null default true,
  idempotency_key text,
  cost json,
  user_id text,
  tags text[] not null default '{}',
  trace_id text,
  progress_percent real,
  progress_message text,
  error json,
  -- Attempts that failed or went back. A task that succeeds at the first try has none.
  past_attempts json[] not null default '{}',
  -- The number of runs when it was last replayed: its dispatch deadline counts again from there.
  runs_before_replay integer not null default 0,
  -- The API key that submitted it, if that key may see only its own tasks.
  owner text collate "C",

  constraint tasks_priority_known check (priority between 0 and 2),
  constraint tasks_status_living check (
    status in ('pending', 'queued', 'assigned', 'executing', 'dead_letter', 'failed')
  ),
  constraint tasks_pending_waits check ((status = 'pending') = (waits_for is not null)),
  constraint tasks_waits_for_known check (waits_for in ('time', 'workflow')),
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

-- The feeder, the walk over queued tasks, and counts: by lane and priority, oldest first.
create index tasks_line on sluice.tasks
  (queue, task_type, capabilities, priority, eligible_at, seq)
  where status = 'queued';

create index tasks_timed on sluice.tasks (run_at) where waits_for = 'time';

-- Sweeper and heartbeats: what a worker holds, and which of its attempts lapses first.
create index tasks_held on sluice.tasks (worker_id, lapses_at) where worker_id is not null;

-- Counts tasks that were assigned and not started. Only tasks of workers that prefetch have entries.
create index tasks_assigned on sluice.tasks (id) where status = 'assigned';

create index tasks_expiring on sluice.tasks (expires_at)
  where expires_at is not null and status in ('pending', 'queued');

-- The next member of a workflow. Members that ended without halting it have no entry, so the next one is always the
-- first entry of its workflow.
create index tasks_workflow_line on sluice.tasks (workflow_id, seq)
  where workflow_id is not null and (status not in ('dead_letter', 'failed') or halts_workflow);

-- At most one member of a workflow is past its turn: in line, or with a worker.
create unique index tasks_workflow_one_out on sluice.tasks (workflow_id)
  where workflow_id is not null
    and (status in ('queued', 'assigned', 'executing') or waits_for = 'time');

create index tasks_ended on sluice.tasks (id) where status in ('dead_letter', 'failed');

-- What retention purges: by state, the oldest end first. Its condition differs from that of tasks_ended, so that the
-- planner reads no list of dead letters by it.
create index tasks_purgeable on sluice.tasks (status, ended_at) where ended_at is not null;

-- Reads the error code from the beginning of the text: ->> fails for an error whose message holds an escape that is
-- no text, such as \u0000, and details may take 256 KiB. The store writes the code first; it stays escaped as in JSON.
create function sluice.error_code(error json) returns text
language plpgsql immutable strict parallel safe as $$
begin
  return substring(left(error::text, 4000) from '^\{"code":"((?:[^"\\]|\\.)*)"');
end
$$;

-- Filters of the dead letter list. Only dead letters have entries: a task that completes writes nothing here.
create index tasks_dead_by_queue on sluice.tasks (queue, id) where status = 'dead_letter';
create index tasks_dead_by_type on sluice.tasks (task_type, id) where status = 'dead_letter';
create index tasks_dead_by_code on sluice.tasks ((sluice.error_code(error) collate "C"), id)
  where status = 'dead_letter';

-- Lists of keys that may see only their own tasks. Tasks of all others have no entry.
create index tasks_owned on sluice.tasks (owner, id) where owner is not null;

-- Parameters, written once at submit, never moved. json, not jsonb: a prompt may hold what jsonb refuses (\u0000,
-- lone surrogates), and keeps its numbers and its key order.
create table sluice.task_inputs (
  task_id uuid primary key,
  parameters json not null
) partition by range (task_id);

-- Completed and cancelled tasks, by the day of their end: retention counts from the end.
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
  -- The lease it was completed with: the same report again gets the same answer.
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
  owner text collate "C",
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

-- Partitions ------------------------------------------------------------------------------------------------------

-- The first id of a day: a UUIDv7 begins with its milliseconds.
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

-- Whether the table is attached and stays so. By a query, as has_table.
create function sluice.has_partition(parent text, child text) returns boolean
language sql volatile as $$
  select exists (
    select from pg_catalog.pg_inherits link
    join pg_catalog.pg_class part on part.oid = link.inhrelid
    where link.inhparent = ('sluice.' || parent)::regclass
      and part.relname = child and not link.inhdetachpending
  )
$$;

-- The new table belongs to the owner of the parent, also when another role with the owner's rights makes it: otherwise
-- the owner could neither detach nor drop it.
create function sluice.create_like(parent text, child text) returns void
language plpgsql as $$
declare
  owner text := (
    select pg_get_userbyid(relowner) from pg_catalog.pg_class
    where oid = ('sluice.' || parent)::regclass
  );
begin
  execute format('create table sluice.%I (like sluice.%I including all)', child, parent);
  execute format('alter table sluice.%I owner to %I', child, owner);
end
$$;

-- Makes the partition of a day, or attaches it again if retention has detached and not yet dropped it. While a detach is
-- under way it fails with 55P03, like a lock.
create function sluice.ensure_partition(
  parent text, day date, lower_bound text, upper_bound text
) returns void
language plpgsql as $$
declare
  child text := parent || '_' || to_char(day, 'YYYYMMDD');
begin
  if sluice.has_partition(parent, child) then
    return;
  end if;
  perform pg_advisory_xact_lock(hashtext('sluice.ensure_partition'));
  if sluice.has_partition(parent, child) then
    return;
  end if;
  if not sluice.has_table(child) then
    -- Made apart, then attached: "partition of" would lock the parent against every read and write, and wait for any
    -- open transaction while everybody else waits for it.
    perform sluice.create_like(parent, child);
  elsif exists (
    select from pg_catalog.pg_inherits
    where inhrelid = ('sluice.' || child)::regclass and inhdetachpending
  ) then
    raise exception 'partition % is being detached', child using errcode = '55P03';
  end if;
  execute format(
    'alter table sluice.%I attach partition sluice.%I for values from (%L) to (%L)',
    parent, child, lower_bound, upper_bound
  );
end
$$;

create function sluice.ensure_inputs_of(day date) returns void
language sql volatile
set timezone = 'UTC'
as $$
  select sluice.ensure_partition(
    'task_inputs', day, sluice.first_id_of(day)::text, sluice.first_id_of(day + 1)::text
  )
$$;

-- Bounds of history are days in UTC, whatever the session's time zone.
create function sluice.ensure_history_of(day date) returns void
language sql volatile
set timezone = 'UTC'
as $$
  select sluice.ensure_partition(
    'task_history', day, day::timestamptz::text, (day + 1)::timestamptz::text
  )
$$;

-- The days that an insert found missing. The insert waits for it: for a lock 1 s at most.
create function sluice.make_days(parent text, days date[]) returns void
language plpgsql
set lock_timeout = '1s'
as $$
declare
  day date;
begin
  foreach day in array days loop
    if parent = 'task_inputs' then
      perform sluice.ensure_inputs_of(day);
    else
      perform sluice.ensure_history_of(day);
    end if;
  end loop;
end
$$;

-- Gives up a lock after 1 s: an insert that finds its day missing waits for the same advisory lock.
create function sluice.ensure_partitions(days_ahead integer, instant timestamptz)
returns void
language plpgsql
set lock_timeout = '1s'
set timezone = 'UTC'
as $$
declare
  day date;
begin
  for day in
    select instant::date + n from generate_series(-2, days_ahead) as n
  loop
    perform sluice.ensure_inputs_of(day);
    perform sluice.ensure_history_of(day);
  end loop;
end
$$;

-- Tasks with an id of that day that are kept, living or in history: they need their inputs.
-- Index: the primary keys, one range of each table and partition.
create function sluice.tasks_of(day date) returns setof uuid
language sql stable
as $$
  select id from sluice.tasks
  where id >= sluice.first_id_of(day) and id < sluice.first_id_of(day + 1)
  union all
  select id from sluice.task_history
  where id >= sluice.first_id_of(day) and id < sluice.first_id_of(day + 1)
$$;

-- The last step of retention. Under the lock of ensure_partition: an insert may have had the day attached again, or
-- have written to it just before it was detached. Then the day stays.
create function sluice.drop_detached(parent text, day date) returns boolean
language plpgsql
set lock_timeout = '1s'
as $$
declare
  child text := parent || '_' || to_char(day, 'YYYYMMDD');
begin
  perform pg_advisory_xact_lock(hashtext('sluice.ensure_partition'));
  if not sluice.has_table(child) or sluice.has_partition(parent, child) then
    return false;
  end if;
  if parent = 'task_inputs' and exists (select from sluice.tasks_of(day)) then
    perform sluice.ensure_inputs_of(day);
    return false;
  end if;
  execute format('drop table sluice.%I', child);
  execute format('drop table if exists sluice.%I', child || '_kept');
  return true;
end
$$;

-- Copies the inputs of kept tasks to a table "…_kept"; called again, it copies what is missing there. One server at a
-- time, under a lock that replace_inputs_of needs as well: copies of other servers would keep it from its table lock.
create function sluice.copy_kept_inputs_of(day date) returns void
language plpgsql
as $$
declare
  child text := 'task_inputs_' || to_char(day, 'YYYYMMDD');
begin
  perform pg_advisory_xact_lock(hashtext('sluice.copy_kept_inputs_of'));
  if not sluice.has_table(child || '_kept') then
    perform sluice.create_like('task_inputs', child || '_kept');
  end if;
  execute format(
    'insert into sluice.%I
     select input.* from sluice.tasks_of(%L) as needed (id), sluice.%I as input
     where input.task_id = needed.id
     on conflict do nothing',
    child || '_kept', day, child
  );
end
$$;

-- Replaces a day of inputs by its copy. In one transaction, so that no reader misses an input. Readers and writers of
-- all days wait meanwhile: 50 ms at most until this has its lock, then a few milliseconds.
create function sluice.replace_inputs_of(day date) returns void
language plpgsql
set lock_timeout = '50ms'
as $$
declare
  child text := 'task_inputs_' || to_char(day, 'YYYYMMDD');
begin
  perform pg_advisory_xact_lock(hashtext('sluice.copy_kept_inputs_of'));
  perform pg_advisory_xact_lock(hashtext('sluice.ensure_partition'));
  lock table only sluice.task_inputs in access exclusive mode;
  -- Tasks that came, or moved from one table to the other, since the copy.
  perform sluice.copy_kept_inputs_of(day);
  execute format('alter table sluice.task_inputs detach partition sluice.%I', child);
  execute format('drop table sluice.%I', child);
  execute format('alter table sluice.%I rename to %I', child || '_kept', child);
  perform sluice.ensure_inputs_of(day);
end
$$;

-- Workflows -------------------------------------------------------------------------------------------------------

-- A row to lock: submits to a workflow and ends of its members serialise on it.
create table sluice.workflows (
  id text collate "C" primary key,
  -- A member that was cancelled while it ran keeps its place until its worker lets go of it or its attempt lapses: two
  -- members never run at once.
  held_task uuid,
  held_lease uuid,
  held_worker_id uuid,
  held_since timestamptz,
  held_until timestamptz,
  constraint workflows_held_as_a_whole check (
    num_nulls(held_task, held_lease, held_worker_id, held_since, held_until) in (0, 5)
  )
);

-- Each has a condition of its own, so that the planner cannot take another of them and read it whole.
create index workflows_held on sluice.workflows (held_until) where held_task is not null;
create index workflows_held_lease on sluice.workflows (held_lease) where held_lease is not null;
create index workflows_held_worker on sluice.workflows (held_worker_id)
  where held_worker_id is not null;

-- Queues, lanes, limits -------------------------------------------------------------------------------------------

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
  -- Whether the service behind the queue is called. A change is a new version of the row, so that a server with an
  -- older one ignores it.
  circuit text not null default 'closed',
  circuit_reason text,
  -- Open: nothing is taken until then, and when the latest probes were let go.
  circuit_until timestamptz,
  circuit_probes_at timestamptz,
  -- Recovering: since when, and how far.
  circuit_since timestamptz,
  circuit_step smallint,
  -- How often it opened since it was last closed, and the number of slots of which it recovers a share.
  circuit_trips integer not null default 0,
  circuit_slots integer not null default 0,
  -- Task types and capability sets that callers make up cost memory and time wherever lanes are kept.
  max_lanes integer not null default 10000,
  constraint queues_bounds check (
    (max_concurrency is null or max_concurrency >= 1)
    and max_ready >= 1
    and (max_active is null or max_active >= 1)
  ),
  constraint queues_paused_until check (paused or paused_until is null),
  constraint queues_circuit_known check (circuit in ('closed', 'open', 'recovering')),
  constraint queues_circuit_reason check (
    case when circuit = 'closed' then circuit_reason is null
      else circuit_reason is not null and circuit_reason in (
        'rate_limited', 'unavailable', 'quota_exhausted', 'unauthorized', 'forbidden'
      )
    end
  ),
  constraint queues_circuit_open check (
    (circuit = 'open') = (circuit_until is not null)
    and (circuit = 'open') = (circuit_probes_at is not null)
  ),
  constraint queues_circuit_recovering check (
    (circuit = 'recovering') = (circuit_since is not null)
    and (circuit = 'recovering') = (circuit_step is not null)
    and (circuit_step is null or circuit_step in (0, 1))
  ),
  constraint queues_circuit_counts check (
    circuit_trips >= 0 and circuit_slots >= 0
    and (circuit <> 'closed' or (circuit_trips = 0 and circuit_slots = 0))
  ),
  constraint queues_max_lanes check (max_lanes between 1 and 1000000)
);

-- What changed a moment ago: servers ask every few seconds, whatever the number of queues.
create index queues_changed on sluice.queues (changed_at) where version > 0;
create index queues_ceilings on sluice.queues (name) where max_active is not null;

-- A server enters a lane before it first submits to it, and again now and then. A lane that was not entered for a while
-- and holds nothing is purged.
create table sluice.lanes (
  queue text collate "C" not null,
  task_type text collate "C" not null,
  capabilities text[] collate "C" not null,
  kept_until timestamptz not null,
  primary key (queue, task_type, capabilities)
);
create index lanes_kept on sluice.lanes (kept_until);

-- The number of rows of sluice.lanes that a queue has, so that nobody has to count them.
create table sluice.lane_counts (
  queue text collate "C" primary key,
  lanes integer not null constraint lane_counts_lanes check (lanes >= 0)
);

-- For a lane that was not there a moment ago. False: the queue has as many lanes as it may have.
create function sluice.enter_lane(
  of_queue text, of_type text, of_capabilities text[], until timestamptz
) returns boolean
language plpgsql volatile as $$
declare
  most integer;
begin
  select coalesce((select max_lanes from sluice.queues where name = of_queue), 10000) into most;
  -- A server that enters another lane of the queue waits here, and then sees this count.
  insert into sluice.lane_counts as counted (queue, lanes) values (of_queue, 1)
  on conflict (queue) do update set lanes = counted.lanes + 1 where counted.lanes < most;
  if not found then
    return exists (
      select from sluice.lanes
      where queue = of_queue and task_type = of_type and capabilities = of_capabilities
    );
  end if;
  insert into sluice.lanes (queue, task_type, capabilities, kept_until)
  values (of_queue, of_type, of_capabilities, until)
  on conflict do nothing;
  if not found then
    update sluice.lane_counts set lanes = lanes - 1 where queue = of_queue;
  end if;
  return true;
end
$$;

-- One sequence for all limits: a limit that is deleted and made again gets a greater version than it had.
create sequence sluice.limit_version;

create table sluice.limits (
  name text collate "C" primary key,
  version bigint not null default nextval('sluice.limit_version'),
  unit text not null,
  rate bigint not null,
  per_seconds integer not null,
  burst bigint,
  changed_at timestamptz not null default now(),
  constraint limits_bounds check (
    rate >= 1 and per_seconds >= 1 and (burst is null or burst >= 1)
  )
);

create index limits_changed on sluice.limits (changed_at);

-- What the buckets held, written once a second while they change. No index on "at": every write changes it, and would
-- have to write to every index as well.
create table sluice.bucket_levels (
  bucket text collate "C" primary key,
  -- Below zero: in debt.
  tokens double precision not null,
  at timestamptz not null,
  -- Nothing was granted after it.
  is_final boolean not null default false
);

-- Queues whose newest settings the ready queue may not have. A change of a queue, or of a limit that it shares, writes its
-- row in the same transaction. Until a server has told the ready queue, claims of the queue's tasks are refused; after
-- that, claims of what was taken before. Rows of settled changes are deleted when no claim that old can come any more.
create table sluice.unsettled (
  queue text collate "C" primary key,
  -- A server that told the ready queue of an older change settles nothing.
  change bigint not null,
  -- Null: not settled. Else the generation that has it, and the last grant from before it.
  generation bigint,
  last_grant bigint,
  settled_at timestamptz,
  constraint unsettled_whole check (
    (generation is null) = (settled_at is null) and (last_grant is null) = (settled_at is null)
  )
);

create sequence sluice.settings_change;

create function sluice.unsettle(names text[]) returns void
language sql as $$
  insert into sluice.unsettled as known (queue, change)
  select name, nextval('sluice.settings_change')
  from (select distinct name from unnest(names) as name order by name) as named
  on conflict (queue) do update set
    change = excluded.change, generation = null, last_grant = null, settled_at = null
$$;

-- Triggers, so that no statement changes settings without it.
create function sluice.unsettle_queue() returns trigger
language plpgsql as $$
begin
  perform sluice.unsettle(array[new.name]);
  return null;
end
$$;

create trigger queues_unsettle after insert or update of version on sluice.queues
for each row when (new.version > 0) execute function sluice.unsettle_queue();

-- The lock waits for queues that are being put with this limit. Queues that come later tell the ready queue of the limits
-- they use, and read them after this commit.
create function sluice.unsettle_users() returns trigger
language plpgsql volatile as $$
begin
  perform from sluice.limits where name = new.name for update;
  perform sluice.unsettle(array(
    select queue.name from sluice.queues queue
    where exists (
      select from json_array_elements(queue.limits) as used where used ->> 'use' = new.name
    )
  ));
  return null;
end
$$;

create trigger limits_unsettle after update of version on sluice.limits
for each row execute function sluice.unsettle_users();

-- The ready queue -------------------------------------------------------------------------------------------------

-- Whose keys these are, where several installations share one Redis.
create table sluice.installation (
  only_row boolean primary key default true check (only_row),
  id uuid not null default gen_random_uuid()
);

insert into sluice.installation default values;

-- Who serves from a ready queue in memory: one process at a time, by a lease and not by a session lock, which PgBouncer
-- would break.
create table sluice.serving (
  only_row boolean primary key default true check (only_row),
  holder uuid not null,
  ready_queue text not null check (ready_queue in ('memory', 'redis')),
  renewed_at timestamptz not null,
  -- When this holder took the lease.
  since timestamptz not null default now(),
  -- Which Redis it is that servers share, by a name that is kept in it.
  place text
);

-- Work that one server at a time does, each by a lease as in sluice.serving.
create table sluice.turns (
  name text collate "C" primary key,
  holder uuid not null,
  renewed_at timestamptz not null
);

-- The contents of the ready queue that claims may come from. It grows when they are restored.
create table sluice.generation (
  only_row boolean primary key default true check (only_row),
  number bigint not null default 0
);

insert into sluice.generation default values;

-- What a claim asks before it looks at any row: null when this is not the generation, else the queues of which it may
-- claim nothing, given the oldest of its grants. Every claim holds the lock shared until it commits, so that the process
-- that holds it alone knows that no claim is under way. Volatile: each statement in it sees what was committed before it,
-- so the number is not the one from before the wait.
create function sluice.fenced_queues(expected bigint, oldest_grant bigint) returns text[]
language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock_shared(7378697630);
  return (
    select case when number = expected then array(
      select queue from sluice.unsettled
      where settled_at is null or (generation = expected and last_grant >= oldest_grant)
    ) end
    from sluice.generation where only_row
  );
end
$$;

-- Claims of earlier generations have committed when this answers, or will find the new number.
create function sluice.begin_generation() returns bigint
language plpgsql volatile
set lock_timeout = '10s'
as $$
declare
  begun bigint;
begin
  perform pg_advisory_xact_lock(7378697630);
  update sluice.generation set number = number + 1 where only_row returning number into begun;
  return begun;
end
$$;

-- Admission -------------------------------------------------------------------------------------------------------
--
-- How many tasks are active: what was admitted less what ended. Both are written in the transaction that changes the
-- tasks, so that every snapshot holds counts that agree with its tasks. No transaction of a user touches these rows.
--
-- While a transaction stays open, Postgres keeps every version of a row that is written again and again, and every look
-- walks over all of them. So after a hundred writes a row is replaced by one of the next epoch, and the latest is found
-- first: the versions behind it cost nothing.
create table sluice.admission (
  -- A queue that has a ceiling of its own; '' is all queues.
  scope text collate "C",
  epoch bigint default 0,
  -- Of the queue. Null for all queues: their ceiling is a setting of the servers.
  max_active integer,
  admitted bigint not null default 0,
  writes integer not null default 0,
  -- What had ended when this epoch began: often that leaves room enough, and departures need not be summed up.
  ended_before bigint not null default 0,
  primary key (scope, epoch)
) with (fillfactor = 50);

-- In slots, so that ends wait neither for submits nor for one another.
create table sluice.departures (
  scope text collate "C",
  slot integer,
  epoch bigint default 0,
  ended bigint not null default 0,
  writes integer not null default 0,
  primary key (scope, slot, epoch)
) with (fillfactor = 50);

insert into sluice.admission (scope) values ('');

insert into sluice.departures (scope, slot) select '', slot from generate_series(0, 7) as slot;

-- When the counts were last compared with the tasks.
create table sluice.admission_check (
  only_row boolean primary key default true check (only_row),
  checked_at timestamptz not null default '-infinity'
);

insert into sluice.admission_check default values;

-- In the snapshot of the caller. Not plain SQL, which would be planned at every call.
create function sluice.ended_in(of_scope text) returns bigint
language plpgsql stable as $$
declare
  total bigint;
begin
  select coalesce(sum(latest.ended), 0) into total
  from generate_series(0, 7) as one (slot) cross join lateral (
    select ended from sluice.departures d
    where d.scope = of_scope and d.slot = one.slot
    order by epoch desc limit 1
  ) latest;
  return total;
end
$$;

-- Whether no scope has more active tasks than "most_before": then what is asked for fits. "known" holds the ceilings of
-- the queues as the caller remembers them: when one differs, the caller computed "most_before" wrongly. The first scope is
-- that of all queues. Near a ceiling, a caller that "locks" keeps others out until it has committed. Volatile: each
-- statement in it sees what was committed before it.
create function sluice.has_room(
  scopes text[], most_before bigint[], known integer[], locks boolean
) returns boolean
language plpgsql volatile
set plan_cache_mode = force_generic_plan
as $$
declare
  near constant bigint := 1000;
  is_known boolean;
  room bigint;
  queue_room bigint;
begin
  for look in 1..2 loop
    room := most_before[1] - (
      select admitted from sluice.admission where scope = '' order by epoch desc limit 1
    ) + sluice.ended_in('');
    is_known := true;
    if array_remove(known, null) <> '{}'
      or exists (select from sluice.admission where scope = any(scopes) and scope <> '')
    then
      select bool_and(standing.max_active is not distinct from plan.max_active),
        min(plan.most_before - standing.active)
      into is_known, queue_room
      from unnest(scopes, most_before, known) as plan (scope, most_before, max_active)
      left join lateral (
        select a.max_active, a.admitted - sluice.ended_in(a.scope) as active
        from sluice.admission a where a.scope = plan.scope
        order by epoch desc limit 1
      ) standing on true
      where plan.scope <> '';
      room := least(room, queue_room);
    end if;
    exit when look = 2 or not locks or not is_known or room < 0 or room >= near;
    perform from sluice.admission where scope = any(scopes) order by scope for update;
  end loop;
  return is_known and coalesce(room >= 0, true);
end
$$;

-- The queues that are counted by themselves, in the order in which every statement locks them.
create function sluice.counted_queues(queues text[])
returns table (queue text, n bigint)
language plpgsql volatile
set plan_cache_mode = force_generic_plan
as $$
begin
  if exists (select from sluice.admission where scope = any(queues) and scope <> '') then
    return query
      select one.name, one.times
      from (select name, count(*) as times from unnest(queues) as name group by name) one
      where exists (select from sluice.admission where scope = one.name)
      order by one.name collate "C";
  end if;
end
$$;

-- Refuses when there were more than "most_before", or when the ceiling is not the one that is "known"; nothing unless it
-- "checks".
create function sluice.admit_in(
  of_scope text, n bigint, checks boolean, most_before bigint, known integer
) returns void
language plpgsql volatile as $$
declare
  written sluice.admission;
begin
  loop
    update sluice.admission set admitted = admitted + n, writes = writes + 1
    where scope = of_scope and epoch = (
      select epoch from sluice.admission where scope = of_scope order by epoch desc limit 1
    )
    returning * into written;
    exit when found;
    -- It was replaced while this waited for it, or is not counted any more.
    if not exists (select from sluice.admission where scope = of_scope) then
      return;
    end if;
  end loop;
  if checks and written.max_active is distinct from known then
    raise exception 'the ceiling is not the one that is known' using errcode = 'SL429';
  end if;
  if checks and written.admitted - n - written.ended_before > most_before then
    if written.admitted - n - sluice.ended_in(of_scope) > most_before then
      raise exception 'the ceiling is reached' using errcode = 'SL429';
    end if;
  end if;
  if written.writes >= 100 then
    delete from sluice.admission where scope = of_scope and epoch = written.epoch;
    insert into sluice.admission (scope, epoch, max_active, admitted, ended_before)
    values (
      of_scope, written.epoch + 1, written.max_active, written.admitted, sluice.ended_in(of_scope)
    );
  end if;
end
$$;

create function sluice.add_ended(of_scope text, n bigint) returns void
language plpgsql volatile as $$
declare
  own_slot constant integer := pg_backend_pid() % 8;
  written sluice.departures;
begin
  loop
    update sluice.departures set ended = ended + n, writes = writes + 1
    where scope = of_scope and slot = own_slot and epoch = (
      select epoch from sluice.departures
      where scope = of_scope and slot = own_slot order by epoch desc limit 1
    )
    returning * into written;
    exit when found;
    if not exists (
      select from sluice.departures where scope = of_scope and slot = own_slot
    ) then
      return;
    end if;
  end loop;
  if written.writes >= 100 then
    delete from sluice.departures
    where scope = of_scope and slot = own_slot and epoch = written.epoch;
    insert into sluice.departures (scope, slot, epoch, ended)
    values (of_scope, own_slot, written.epoch + 1, written.ended);
  end if;
end
$$;

-- One entry of "queues" for each task. The last thing that a transaction does before it commits: every submit waits for
-- the row of all queues. That one comes first, then the queues in order, so that no two transactions wait for each other.
-- A queue whose ceiling the caller did not know of is refused: the caller looks again. Without scopes there is no ceiling.
create function sluice.count_admitted(
  queues text[], scopes text[], most_before bigint[], known integer[]
) returns void
language plpgsql volatile
set plan_cache_mode = force_generic_plan
as $$
declare
  checks constant boolean := scopes is not null;
  one record;
  place integer := array_position(scopes, '');
begin
  if queues is null then
    return;
  end if;
  perform sluice.admit_in('', cardinality(queues), checks, most_before[place], null);
  if exists (select from sluice.admission where scope = any(queues) and scope <> '') then
    for one in select * from sluice.counted_queues(queues) loop
      place := array_position(scopes, one.queue);
      perform sluice.admit_in(one.queue, one.n, checks, most_before[place], known[place]);
    end loop;
  end if;
end
$$;

-- As count_admitted.
create function sluice.count_ended(queues text[]) returns void
language plpgsql volatile
set plan_cache_mode = force_generic_plan
as $$
declare
  one record;
begin
  if queues is null then
    return;
  end if;
  perform sluice.add_ended('', cardinality(queues));
  if exists (select from sluice.admission where scope = any(queues) and scope <> '') then
    for one in select * from sluice.counted_queues(queues) loop
      perform sluice.add_ended(one.queue, one.n);
    end loop;
  end if;
end
$$;

-- How many tasks were submitted in one slot of a window; see src/domain/submission-limit.ts.
create type sluice.submission_slot as (per_seconds integer, slot bigint, tasks integer);

-- What was submitted lately, by API key and by user, while that is limited.
create table sluice.submissions (
  subject text collate "C" primary key,
  slots sluice.submission_slot[] not null,
  -- Of the latest statement: what it asked for and what was let through; the statement reads its answer here.
  wanted integer not null,
  granted integer not null,
  -- To the hour: a finer value would change with every write, and its index with it.
  purge_at timestamptz not null
) with (fillfactor = 50);

create index submissions_purgeable on sluice.submissions (purge_at);

-- Workers and servers ---------------------------------------------------------------------------------------------

-- No index reads a column that a heartbeat changes: it is written in place, beside the row it replaces.
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
  -- Until when a worker that fails while others succeed gets no tasks. It stays until the worker succeeds: in the past,
  -- the worker is tried with a few tasks.
  benched_until timestamptz,
  -- Its silence began when no server could have heard it: what it held goes back at no cost, whichever server finds it.
  lapsed_unheard boolean not null default false,
  -- The API key that it registered with, if any.
  owner text,
  -- The server that wrote its last heartbeat.
  heard_by uuid,
  -- Tasks that have ended at the worker and whose results do not arrive, as its last heartbeat named them. Their attempts
  -- do not time out. Null: there are none.
  undelivered uuid[],
  -- When it fell silent. Null: it lives, said goodbye, or could not have been heard.
  lost_at timestamptz,
  -- Since the heartbeat before; 1 is one core.
  cpu_usage real,
  -- Attempts in a row, up to the last one.
  consecutive_failures integer not null default 0,
  drain_requested_at timestamptz,
  -- Of its capabilities, task types and queues: equal for workers that can do the same, so that they are grouped without
  -- reading what they name. Null: like no other.
  offer_hash uuid,
  -- What these names take in memory, about.
  offer_weight integer not null default 0,
  constraint workers_status_known check (status in ('active', 'draining', 'dead'))
) with (fillfactor = 50);

create index workers_living on sluice.workers (id) where status <> 'dead';
create index workers_dead on sluice.workers (id) where status = 'dead';
create index workers_benched on sluice.workers (id)
  where benched_until is not null and status <> 'dead';

-- Each server proves about once a second that it can write heartbeats: the statement takes the same locks on the same
-- tables, over the same connections. The silence of a worker counts only while the server that heard it last has such
-- proofs.
create table sluice.servers (
  id uuid primary key,
  -- The proofs since then have no gap.
  hearing_since timestamptz not null,
  -- The last proof. Tests move this clock; proven_at is always Postgres's own.
  heard_at timestamptz not null,
  proven_at timestamptz not null
) with (fillfactor = 50);

-- Which server asks for workers, and the outcome: one at a time, by a lease as in sluice.serving. Asking twice would do no
-- harm, since a request names a number of workers and not how many more.
create table sluice.scaling (
  only_row boolean primary key default true check (only_row),
  asker uuid not null,
  renewed_at timestamptz not null,
  provisioner text not null check (provisioner in ('process', 'webhook')),
  asked_at timestamptz,
  failing_since timestamptz,
  error text,
  constraint scaling_failure check ((failing_since is null) = (error is null))
);

create sequence sluice.task_type_revisions;

-- What workers said of the task types that they handle: submits get from it what they leave out. One row for each type, of
-- the definition that counts.
create table sluice.task_types (
  name text collate "C" primary key,
  -- Greater than that of every definition before, also after a row was deleted and made again.
  revision bigint not null default nextval('sluice.task_type_revisions'),
  -- Null in these: as for any task.
  queue text collate "C",
  priority text,
  capabilities json,
  timeout_seconds integer,
  max_retries integer,
  cost json,
  -- Only shown; workers apply the one that they have.
  retry json,
  input_schema json,
  -- Of all the above, so that two workers with the same definition are recognised without reading it.
  fingerprint text not null,
  -- Of the code of the worker that told it.
  version text,
  -- Which queues the key of that worker reaches. Null: all.
  within text[],
  -- Servers read what changed since they looked.
  changed_at timestamptz not null default now(),
  seen_at timestamptz not null default now(),
  constraint task_types_priority_known check (priority in ('high', 'medium', 'low')),
  constraint task_types_timeout check (timeout_seconds > 0),
  constraint task_types_max_retries check (max_retries >= 0)
);

alter sequence sluice.task_type_revisions owned by sluice.task_types.revision;
create index task_types_changed on sluice.task_types (changed_at);
create index task_types_seen on sluice.task_types (seen_at);

-- API keys and audit ----------------------------------------------------------------------------------------------

-- Who may call. A key itself is stored nowhere: only its SHA-256, in hex.
create table sluice.api_keys (
  id text primary key,
  name text not null,
  hash text not null,
  scopes text[] not null,
  -- Its submits pass when all else is refused.
  passes_ceilings boolean not null default false,
  -- Of a person who signed in: lives shorter than the key that it was made of, and ends with it.
  session_of text references sluice.api_keys (id),
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  -- Servers read what changed since they looked. Being used is no change.
  changed_at timestamptz not null default now(),
  -- Where a person signed in from, for the list of sessions.
  signed_in_from text,
  -- Which queues and tasks a key reaches. Null: every queue. Copied to its sessions.
  queues text[],
  own_tasks boolean not null default false,
  constraint api_keys_hashed check (hash ~ '^[0-9a-f]{64}$'),
  constraint api_keys_scopes_known check (
    cardinality(scopes) > 0 and scopes <@ array['submit', 'read', 'worker', 'admin']
  ),
  constraint api_keys_sessions_expire check (session_of is null or expires_at is not null)
) with (fillfactor = 50);

create index api_keys_changed on sluice.api_keys (changed_at);
create index api_keys_sessions on sluice.api_keys (session_of, created_at) where session_of is not null;

-- Who changed which setting, from what to what, and every bulk action.
create table sluice.audit (
  id bigint generated always as identity primary key,
  -- To the millisecond: a cursor names it.
  at timestamptz not null,
  -- key: a program with an API key. session: a person who signed in. local: somebody on this machine. process: the
  -- program that embeds the engine.
  actor text collate "C" not null,
  key_id text collate "C",
  key_name text,
  session_id text collate "C",
  address text,
  action text collate "C" not null,
  -- The name or id of what was changed. Null: many at once.
  subject text collate "C",
  -- By field: what it was, and what it is.
  changes json not null,
  -- Of a bulk action: its filter, and how many it met.
  details json not null,
  constraint audit_actor_known check (actor in ('key', 'session', 'local', 'process'))
);

create index audit_at on sluice.audit (at, id);

-- Counters and alerts ---------------------------------------------------------------------------------------------

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

-- A sum stands still at 4 * 10^18 or more: costs of 10^12 a task would be beyond a bigint else, and no row would be
-- summed up any more.
create function sluice.add_counts(a bigint[], b bigint[]) returns bigint[]
language sql immutable parallel safe as $$
  select array_agg(
    least(coalesce(x, 0), 4000000000000000000) + least(coalesce(y, 0), 4000000000000000000)
    order by position
  )
  from unnest(a, b) with ordinality as pair (x, y, position)
$$;

create aggregate sluice.sum_counts(bigint[]) (sfunc = sluice.add_counts, stype = bigint[]);

-- What services answered that want no calls for now (429, 503, 401 …), for people to read. Bounded: a row a second for
-- each queue and server, the newest 1,000 of a queue, a week.
create table sluice.pushbacks (
  queue text collate "C" not null,
  -- To the millisecond: a cursor names it.
  at timestamptz not null,
  task_id uuid not null,
  task_type text collate "C" not null,
  worker_id uuid not null,
  code text collate "C" not null,
  message text not null,
  retry_after_ms bigint,
  -- How many answers of that second the row stands for.
  answers integer not null,
  became text collate "C" not null,
  -- Until when the queue stands still; null: it goes on.
  until timestamptz,
  primary key (queue, at, task_id),
  constraint pushbacks_became_known check (became in ('goes_on', 'stopped', 'was_stopped'))
);

create index pushbacks_at on sluice.pushbacks (at);

-- Which server evaluates the alert rules, by a lease as in sluice.serving, and what it measured last.
create table sluice.alert_evaluation (
  only_row boolean primary key default true check (only_row),
  evaluator uuid not null,
  renewed_at timestamptz not null,
  -- Grows with every evaluation that begins: one that began before another can't write after it.
  turn bigint not null default 1,
  evaluated_at timestamptz,
  -- AlertSnapshot in src/domain/alerts/snapshot.ts.
  snapshot json
);

-- What was changed of a rule. The rules themselves are in src/domain/alerts/rules.ts.
create table sluice.alert_settings (
  name text collate "C" primary key,
  -- Null: the default of the rule.
  threshold float8,
  for_seconds integer,
  off boolean not null default false,
  silenced_until timestamptz,
  silence_note text
);

-- Alerts that are pending or firing. What has no row is well.
create table sluice.alerts (
  name text collate "C" not null,
  -- The queue, or the error code; empty for a rule without a label.
  label text collate "C" not null,
  state text not null,
  since timestamptz not null,
  -- Whether a webhook was told that it fires.
  is_told boolean not null,
  primary key (name, label),
  constraint alerts_state_known check (state in ('pending', 'firing'))
);

-- Messages for webhooks that were not delivered yet. Each target gets its messages in the order of their ids.
create table sluice.webhook_deliveries (
  id bigint generated always as identity primary key,
  -- The webhook-id of every try, by which a receiver knows a message that it got twice.
  message_id text not null unique,
  target text collate "C" not null,
  event_type text not null,
  event json not null,
  created_at timestamptz not null,
  due_at timestamptz not null,
  tries integer not null default 0,
  claimed_by uuid,
  claimed_until timestamptz,
  failing_since timestamptz,
  error text,
  -- Not null: it was tried for too long.
  given_up_at timestamptz
);

create index webhook_deliveries_waiting on sluice.webhook_deliveries (target, id)
  where given_up_at is null;
create index webhook_deliveries_given_up on sluice.webhook_deliveries (given_up_at)
  where given_up_at is not null;

-- Dead letters ----------------------------------------------------------------------------------------------------

-- Dead letters by pattern: task type, error code and normalised message. A background job classifies them, so that no
-- statement of the hot path counts anything; what it counted is read without looking at the dead letters.

-- Ids of tasks that became a dead letter or are none any more, written by the statement that changed them. The job
-- compares the task with sluice.dead_letters, so that a row too many does no harm.
create table sluice.dead_letter_changes (
  seq bigint generated always as identity primary key,
  task_id uuid not null
);

-- At most 1,000 with a message, at most 1,000 without one, and one for all others: see
-- src/domain/dead-letter-patterns.ts. A pattern outlives its dead letters, so that it is not new again tomorrow.
create table sluice.dead_letter_patterns (
  id text collate "C" primary key,
  task_type text not null,
  -- Escaped as in JSON: a code may hold what is no text to Postgres.
  code text not null,
  -- Null: all messages of this type and code that have no pattern of their own.
  message text,
  first_seen timestamptz not null,
  last_seen timestamptz not null
);

-- Every dead letter that was counted, as it was counted.
create table sluice.dead_letters (
  task_id uuid primary key,
  pattern text collate "C" not null,
  queue text collate "C" not null,
  -- Empty: no API key.
  owner text collate "C" not null,
  ended_at timestamptz not null,
  retriable boolean not null
);

-- Lists and replays of a pattern.
create index dead_letters_pattern on sluice.dead_letters (pattern, task_id);
-- The newest of a pattern in one queue and of one key: its example.
create index dead_letters_example on sluice.dead_letters (pattern, queue, owner, task_id);

create table sluice.dead_letter_counts (
  pattern text collate "C" not null,
  queue text collate "C" not null,
  owner text collate "C" not null,
  count bigint not null,
  retriable bigint not null,
  first_seen timestamptz not null,
  last_seen timestamptz not null,
  primary key (pattern, queue, owner)
);

-- How many came in an hour, for 24 hours. Queue and owner are empty in the sum over all.
create table sluice.dead_letter_hours (
  pattern text collate "C" not null,
  queue text collate "C" not null,
  owner text collate "C" not null,
  at timestamptz not null,
  count bigint not null,
  primary key (pattern, queue, owner, at)
);

create index dead_letter_hours_at on sluice.dead_letter_hours (at);

-- Mail between the processes that share a database without Redis: calls of the leader's ready queue and their answers.
-- Unlogged: what is lost here, the callers ask again or the sweeper repairs. Rows are read once and deleted by reading.
create unlogged table sluice.mail (
  recipient uuid not null,
  id bigint generated always as identity,
  sender uuid not null,
  -- A JSON array of messages, oldest first.
  body text not null,
  sent_at timestamptz not null default now(),
  primary key (recipient, id)
);
