-- Who of a workflow is next. Members that ended and let the others go on are not in it, so that
-- however many of them there are, the next one is the first entry of its workflow.
create index tasks_workflow_line on sluice.tasks (workflow_id, seq)
  where workflow_id is not null and (status not in ('dead_letter', 'failed') or halts_workflow);

drop index sluice.tasks_workflow;

-- Places that are kept for cancelled members: by the lease that lets go, and by the worker. Each has
-- a condition of its own, so that the planner cannot take another of them and read it whole.
create index workflows_held_lease on sluice.workflows (held_lease) where held_lease is not null;
create index workflows_held_worker on sluice.workflows (held_worker_id)
  where held_worker_id is not null;
