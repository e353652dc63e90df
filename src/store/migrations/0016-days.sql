-- Attached and not on its way out. By a query, as `has_table`.
create function sluice.has_partition(parent text, child text) returns boolean
language sql volatile as $$
  select exists (
    select from pg_catalog.pg_inherits link
    join pg_catalog.pg_class part on part.oid = link.inhrelid
    where link.inhparent = ('sluice.' || parent)::regclass
      and part.relname = child and not link.inhdetachpending
  )
$$;

-- The new table belongs to the owner of the parent, also when a role makes it that was granted the owner's
-- rights: else the owner could neither detach nor drop it.
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

-- As in 0001, and a day that retention has detached but not dropped yet is attached again. A day whose
-- detaching is under way can't be had until it is over: 55P03, as for a lock.
create or replace function sluice.ensure_partition(
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
    -- Made apart, then attached: "partition of" would lock the parent against every read and write,
    -- and so wait for a user's open transaction while everybody else waits for it.
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

create function sluice.ensure_history_of(day date) returns void
language sql volatile
set timezone = 'UTC'
as $$
  select sluice.ensure_partition(
    'task_history', day, day::timestamptz::text, (day + 1)::timestamptz::text
  )
$$;

-- The days that an insert found missing. A caller waits for it: for a lock 1 s at most.
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

-- As in 0001, but it gives up after 1 s: an insert that finds its day missing waits for this one.
create or replace function sluice.ensure_partitions(days_ahead integer, instant timestamptz)
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

-- Tasks of that day that are kept, among the living or in history: they need their inputs.
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

-- The last step of retention. Under the lock of `ensure_partition`: an insert may have had the day
-- attached again, or have written to it just before it was detached. Then the day stays.
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

-- Copies the inputs of tasks that are kept to a table "…_kept". Again it copies what is missing there. One
-- server at a time, under a lock that `replace_inputs_of` needs as well: the copies of others would
-- keep it from its lock on the table.
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

-- A day of inputs is replaced by its copy. All in one transaction, so that no reader misses an input.
-- Readers and writers of all days wait meanwhile: for this to get its lock 50 ms at most, then a few
-- milliseconds.
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
  -- Tasks that came, or went from one table to the other, while they were copied.
  perform sluice.copy_kept_inputs_of(day);
  execute format('alter table sluice.task_inputs detach partition sluice.%I', child);
  execute format('drop table sluice.%I', child);
  execute format('alter table sluice.%I rename to %I', child || '_kept', child);
  perform sluice.ensure_inputs_of(day);
end
$$;
