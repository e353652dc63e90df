-- Indexes for the filters of the dead letter list. Only dead letters have entries in them: a task that
-- completes writes nothing here.

-- Not by ->>, which fails for an error whose message holds an escape that is no text, such as \u0000.
-- The store writes the code first; it stays escaped as JSON escapes it. Only the beginning is looked at:
-- details may take 256 KiB.
create function sluice.error_code(error json) returns text
language plpgsql immutable strict parallel safe as $$
begin
  return substring(left(error::text, 4000) from '^\{"code":"((?:[^"\\]|\\.)*)"');
end
$$;

create index tasks_dead_by_queue on sluice.tasks (queue, id) where status = 'dead_letter';
create index tasks_dead_by_type on sluice.tasks (task_type, id) where status = 'dead_letter';
create index tasks_dead_by_code on sluice.tasks ((sluice.error_code(error) collate "C"), id)
  where status = 'dead_letter';
