-- The same counts with fewer statements: each costs a submit and a finish something. What servers of
-- the version before call stays.

-- Planned once: whoever calls these has said so for all that they do.
create or replace function sluice.ended_in(of_scope text) returns bigint
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

-- Refuses when there were more than "most_before", or when the ceiling is not the one that is "known";
-- nothing unless it "checks".
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
  if checks and (
    written.max_active is distinct from known
    or written.admitted - n - sluice.ended_in(of_scope) > most_before
  ) then
    raise exception 'the ceiling is reached' using errcode = 'SL429';
  end if;
  if written.writes >= 100 then
    delete from sluice.admission where scope = of_scope and epoch = written.epoch;
    insert into sluice.admission (scope, epoch, max_active, admitted)
    values (of_scope, written.epoch + 1, written.max_active, written.admitted);
  end if;
end
$$;

create or replace function sluice.add_ended(of_scope text, n bigint) returns void
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

-- One entry of "queues" for each task. The last thing that a transaction does before it commits:
-- the row of all queues is everybody's. That one comes first, then the queues in order, so that no
-- two wait for each other. A queue whose ceiling the caller did not know of is refused: it looks again.
-- Without scopes there is no ceiling.
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
create or replace function sluice.count_ended(queues text[]) returns void
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
