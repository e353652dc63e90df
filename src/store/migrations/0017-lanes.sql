-- A queue has so many lanes at most: task types and capability sets that people make up cost memory
-- and time wherever lanes are kept. A server enters a lane before it first submits to it, and again now and then;
-- one that was not entered for a while and holds nothing is forgotten.
alter table sluice.queues add column max_lanes integer not null default 10000;
alter table sluice.queues add constraint queues_max_lanes check (max_lanes between 1 and 1000000);

create table sluice.lanes (
  queue text collate "C" not null,
  task_type text collate "C" not null,
  capabilities text[] collate "C" not null,
  kept_until timestamptz not null,
  primary key (queue, task_type, capabilities)
);
create index lanes_kept on sluice.lanes (kept_until);

-- How many rows of sluice.lanes a queue has: counted, so that nobody has to look at them all.
create table sluice.lane_counts (
  queue text collate "C" primary key,
  lanes integer not null constraint lane_counts_lanes check (lanes >= 0)
);

-- For a lane that was not there a moment ago. False: the queue has as many as it may have.
create function sluice.enter_lane(
  of_queue text, of_type text, of_capabilities text[], until timestamptz
) returns boolean
language plpgsql volatile as $$
declare
  most integer;
begin
  select coalesce((select max_lanes from sluice.queues where name = of_queue), 10000) into most;
  -- Whoever enters another lane of the queue waits here, and then finds the count of this one.
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
