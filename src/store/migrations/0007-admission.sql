-- How many tasks are active: what was admitted less what ended. Both are written in the transaction
-- that changes the tasks, so that every snapshot holds counts that agree with its tasks. Nothing of
-- a user's own transaction touches these rows. They are written in place: no index reads the counts,
-- and the pages have room for the versions that a busy row leaves behind.
create table sluice.admission (
  -- A queue that has a ceiling of its own; '' is all queues together.
  scope text collate "C" primary key,
  -- Of the queue. Null for all queues: their ceiling is a setting of the servers.
  max_active integer,
  admitted bigint not null default 0
) with (fillfactor = 10);

-- In slots, so that those who finish wait neither for those who submit nor for one another.
create table sluice.departures (
  scope text collate "C",
  slot smallint,
  ended bigint not null default 0,
  primary key (scope, slot)
) with (fillfactor = 10);

-- When the counts were last compared with the tasks.
create table sluice.admission_check (
  only_row boolean primary key default true check (only_row),
  checked_at timestamptz not null default '-infinity'
);

insert into sluice.admission_check default values;

create index queues_ceilings on sluice.queues (name) where max_active is not null;

create function sluice.departure_slot() returns smallint
language sql stable as $$
  select (pg_backend_pid() % 8)::smallint
$$;

-- Whether no scope has more active tasks than "most_before": then what is asked for fits. "known" is
-- what the ceilings of the queues are thought to be: when they are not, it was asked for wrongly.
-- Near a ceiling, whoever "locks" keeps others out until it has committed. Volatile: each statement
-- in it sees what was committed before it.
create function sluice.has_room(
  scopes text[], most_before bigint[], known integer[], locks boolean
) returns boolean
language plpgsql volatile as $$
declare
  near constant bigint := 1000;
  is_known boolean;
  room bigint;
begin
  for look in 1..2 loop
    select bool_and(standing.max_active is not distinct from plan.max_active),
      min(plan.most_before - standing.active)
    into is_known, room
    from unnest(scopes, most_before, known) as plan (scope, most_before, max_active)
    left join lateral (
      select a.max_active, a.admitted - (
        select coalesce(sum(d.ended), 0) from sluice.departures d where d.scope = a.scope
      ) as active
      from sluice.admission a where a.scope = plan.scope
      offset 0
    ) standing on true;
    exit when look = 2 or not locks or not is_known or room < 0 or room >= near;
    perform from sluice.admission where scope = any(scopes) order by scope for update;
  end loop;
  return is_known and coalesce(room >= 0, true);
end
$$;

-- One entry of "queues" for each task. The last thing that a transaction does before it commits:
-- the row of all queues is everybody's. In the order of the scopes, so that no two wait for each other.
create function sluice.count_admitted(
  queues text[], scopes text[], most_before bigint[]
) returns void
language plpgsql volatile as $$
declare
  one record;
  before bigint;
begin
  if queues is null then
    return;
  end if;
  for one in
    select a.scope, counted.n, plan.most_before
    from (
      select queue as scope, count(*) as n from unnest(queues) as queue group by queue
      union all
      select '', cardinality(queues)
    ) counted
    cross join lateral (
      select scope from sluice.admission where scope = counted.scope offset 0
    ) a
    left join unnest(scopes, most_before) as plan (scope, most_before) on plan.scope = a.scope
    order by a.scope
  loop
    update sluice.admission set admitted = admitted + one.n where scope = one.scope
    returning admitted - one.n into before;
    if one.most_before is not null and before - (
      select coalesce(sum(ended), 0) from sluice.departures where scope = one.scope
    ) > one.most_before then
      raise exception 'the ceiling is reached' using errcode = 'SL429';
    end if;
  end loop;
end
$$;

-- As count_admitted.
create function sluice.count_ended(queues text[]) returns void
language plpgsql volatile as $$
declare
  own_slot constant smallint := sluice.departure_slot();
  one record;
begin
  if queues is null then
    return;
  end if;
  for one in
    select d.scope, counted.n
    from (
      select queue as scope, count(*) as n from unnest(queues) as queue group by queue
      union all
      select '', cardinality(queues)
    ) counted
    cross join lateral (
      select scope from sluice.departures where scope = counted.scope and slot = own_slot offset 0
    ) d
    order by d.scope
  loop
    update sluice.departures set ended = ended + one.n
    where scope = one.scope and slot = own_slot;
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
