-- Queues whose newest settings the ready queue may not have. A change of a queue, or of a limit that it
-- shares, writes its row in the same transaction. Until a server has told the ready queue, claims of the
-- queue's tasks are refused; after that, claims of what was taken before. Rows of settled changes are
-- deleted when no claim that old can come any more.
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

-- Triggers, so that no statement, and no server of the version before, changes settings without it.
create function sluice.unsettle_queue() returns trigger
language plpgsql as $$
begin
  perform sluice.unsettle(array[new.name]);
  return null;
end
$$;

create trigger queues_unsettle after insert or update of version on sluice.queues
for each row when (new.version > 0) execute function sluice.unsettle_queue();

-- The lock waits for queues that are being put with this limit. Those that come later tell the ready queue
-- of the limits they use, and read them after this commit.
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

-- What a claim asks before it looks at any row: null when this is not the generation, else the queues of
-- which it may claim nothing, given the oldest of its grants. Volatile, and under the lock that
-- "is_generation" takes: it sees what was committed before it.
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
