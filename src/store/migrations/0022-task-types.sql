-- What workers said of the task types that they handle: submits that leave something out get it from here. One row
-- for each type, of the definition that counts.
create sequence sluice.task_type_revisions;

create table sluice.task_types (
  name text collate "C" primary key,
  -- Greater than that of every definition before, also after a row was deleted and made again.
  revision bigint not null default nextval('sluice.task_type_revisions'),
  -- Null in these: as for any task.
  queue text collate "C",
  priority text,
  capabilities json,
  timeout_seconds integer,
  max_retries integer,
  cost json,
  -- Only shown; workers apply the one that they have.
  retry json,
  input_schema json,
  -- Of all the above, so that two workers with the same definition are known without reading it.
  fingerprint text not null,
  -- Of the code of the worker that told it.
  version text,
  -- Which queues the key of that worker reaches. Null: all.
  within text[],
  -- Servers read what changed since they looked.
  changed_at timestamptz not null default now(),
  seen_at timestamptz not null default now(),
  constraint task_types_priority_known check (priority in ('high', 'medium', 'low')),
  constraint task_types_timeout check (timeout_seconds > 0),
  constraint task_types_max_retries check (max_retries >= 0)
);

alter sequence sluice.task_type_revisions owned by sluice.task_types.revision;
create index task_types_changed on sluice.task_types (changed_at);
create index task_types_seen on sluice.task_types (seen_at);
