-- How many tasks are active: what was admitted less what ended. Both are written in the transaction
-- that changes the tasks, so that every snapshot holds counts that agree with its tasks. Nothing of
-- a user's own transaction touches these rows.
--
-- While somebody's transaction stays open, Postgres keeps every version of a row that is written again
-- and again, and whoever looks for it walks over all of them. So after a hundred writes a row is replaced
-- by one of the next epoch, and the latest is found first: what lies behind it costs nothing.
create table sluice.admission (
  -- A queue that has a ceiling of its own; '' is all queues.
  scope text collate "C",
  epoch bigint default 0,
  -- Of the queue. Null for all queues: their ceiling is a setting of the servers.
  max_active integer,
  admitted bigint not null default 0,
  writes integer not null default 0,
  primary key (scope, epoch)
) with (fillfactor = 50);

-- In slots, so that those who finish wait neither for those who submit nor for one another.
create table sluice.departures (
  scope text collate "C",
  slot integer,
  epoch bigint default 0,
  ended bigint not null default 0,
  writes integer not null default 0,
  primary key (scope, slot, epoch)
) with (fillfactor = 50);

-- When the counts were last compared with the tasks.
create table sluice.admission_check (
  only_row boolean primary key default true check (only_row),
  checked_at timestamptz not null default '-infinity'
);

insert into sluice.admission_check default values;

create index queues_ceilings on sluice.queues (name) where max_active is not null;

-- In the snapshot of whoever asks. Not in plain SQL, which would be planned anew each time.
create function sluice.ended_in(of_scope text) returns bigint
language plpgsql stable as $$
begin
  return (
    select coalesce(sum(latest.ended), 0)::bigint
    from generate_series(0, 7) as one (slot) cross join lateral (
      select ended from sluice.departures d
      where d.scope = of_scope and d.slot = one.slot
      order by epoch desc limit 1
    ) latest
  );
end
$$;

-- Whether no scope has more active tasks than "most_before": then what is asked for fits. "known" is
-- what the ceilings of the queues are thought to be: when they are not, it was asked for wrongly.
-- The first scope is that of all queues. Near a ceiling, whoever "locks" keeps others out until it has
-- committed. Volatile: each statement in it sees what was committed before it.
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

-- How many were admitted before; null when the scope is not counted.
create function sluice.add_admitted(of_scope text, n bigint) returns bigint
language plpgsql volatile
set plan_cache_mode = force_generic_plan
as $$
declare
  latest bigint;
  written sluice.admission;
begin
  loop
    select epoch into latest from sluice.admission
    where scope = of_scope order by epoch desc limit 1;
    if not found then
      return null;
    end if;
    update sluice.admission set admitted = admitted + n, writes = writes + 1
    where scope = of_scope and epoch = latest
    returning * into written;
    -- Else it was replaced while this waited for it.
    exit when found;
  end loop;
  if written.writes >= 100 then
    delete from sluice.admission where scope = of_scope and epoch = latest;
    insert into sluice.admission (scope, epoch, max_active, admitted)
    values (of_scope, latest + 1, written.max_active, written.admitted);
  end if;
  return written.admitted - n;
end
$$;

create function sluice.add_ended(of_scope text, n bigint) returns void
language plpgsql volatile
set plan_cache_mode = force_generic_plan
as $$
declare
  own_slot constant integer := pg_backend_pid() % 8;
  latest bigint;
  written sluice.departures;
begin
  loop
    select epoch into latest from sluice.departures
    where scope = of_scope and slot = own_slot order by epoch desc limit 1;
    if not found then
      return;
    end if;
    update sluice.departures set ended = ended + n, writes = writes + 1
    where scope = of_scope and slot = own_slot and epoch = latest
    returning * into written;
    exit when found;
  end loop;
  if written.writes >= 100 then
    delete from sluice.departures
    where scope = of_scope and slot = own_slot and epoch = latest;
    insert into sluice.departures (scope, slot, epoch, ended)
    values (of_scope, own_slot, latest + 1, written.ended);
  end if;
end
$$;

-- Of the queues that are counted by themselves, in the order in which everybody locks them.
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

-- One entry of "queues" for each task. The last thing that a transaction does before it commits:
-- the row of all queues is everybody's. That one comes first, then the queues in order, so that no
-- two wait for each other.
create function sluice.count_admitted(
  queues text[], scopes text[], most_before bigint[]
) returns void
language plpgsql volatile as $$
declare
  before bigint;
  one record;
begin
  if queues is null then
    return;
  end if;
  before := sluice.add_admitted('', cardinality(queues)) - sluice.ended_in('');
  if before > most_before[array_position(scopes, '')] then
    raise exception 'the ceiling is reached' using errcode = 'SL429';
  end if;
  for one in select * from sluice.counted_queues(queues) loop
    before := sluice.add_admitted(one.queue, one.n) - sluice.ended_in(one.queue);
    if before > most_before[array_position(scopes, one.queue)] then
      raise exception 'the ceiling is reached' using errcode = 'SL429';
    end if;
  end loop;
end
$$;

-- As count_admitted.
create function sluice.count_ended(queues text[]) returns void
language plpgsql volatile as $$
declare
  one record;
begin
  if queues is null then
    return;
  end if;
  perform sluice.add_ended('', cardinality(queues));
  for one in select * from sluice.counted_queues(queues) loop
    perform sluice.add_ended(one.queue, one.n);
  end loop;
end
$$;

-- What changes while this is counted is put right by the first comparison.
set local enable_seqscan = on;

insert into sluice.admission (scope, admitted)
select '', count(*) from sluice.tasks where ended_at is null;

insert into sluice.admission (scope, max_active, admitted)
select q.name, q.max_active, coalesce(counted.n, 0)
from sluice.queues q
left join (
  select queue, count(*) as n from sluice.tasks where ended_at is null group by queue
) counted on counted.queue = q.name
where q.max_active is not null;

insert into sluice.departures (scope, slot)
select scope, slot from sluice.admission cross join generate_series(0, 7) as slot;
