-- Whatever is due is queued: the line is in Postgres, and the ready queue holds the head of it. Tasks
-- that waited for room take their place in line. Without its index the update is cheap, and the new
-- index is built once.
drop index sluice.tasks_line;

update sluice.tasks set status = 'queued', waits_for = null, queued_at = eligible_at
where waits_for = 'room';

-- A server of the version before can't put a task where nobody would look for it.
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
