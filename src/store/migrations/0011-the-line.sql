-- Whatever is due is queued: the line is in Postgres, and the ready queue holds the head of it. Tasks
-- that waited for room take their place in line. Without its index the update is cheap, and the new
-- index is built once.
drop index sluice.tasks_line;

update sluice.tasks set status = 'queued', waits_for = null, queued_at = eligible_at
where waits_for = 'room';

-- What a server of the version before puts aside for want of room is in line, too: a lap finds it.
create function sluice.put_in_line() returns trigger
language plpgsql as $$
begin
  new.status := 'queued';
  new.waits_for := null;
  new.queued_at := coalesce(new.queued_at, now());
  return new;
end
$$;

create trigger tasks_put_in_line before insert or update of waits_for on sluice.tasks
for each row when (new.waits_for = 'room') execute function sluice.put_in_line();

alter table sluice.tasks
  drop constraint tasks_waits_for_known,
  add constraint tasks_waits_for_known check (waits_for in ('time', 'workflow'));

-- Feeder, walk over the line, and counts: by lane and priority, oldest first.
create index tasks_line on sluice.tasks
  (queue, task_type, capabilities, priority, eligible_at, seq)
  where status = 'queued';

drop index sluice.tasks_workflow_one_out;
create unique index tasks_workflow_one_out on sluice.tasks (workflow_id)
  where workflow_id is not null
    and (status in ('queued', 'assigned', 'executing') or waits_for = 'time');
