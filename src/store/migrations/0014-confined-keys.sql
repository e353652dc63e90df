-- Where a person signed in from, for the list of sessions.
alter table sluice.api_keys add column signed_in_from text;

-- What of the queues and tasks a key reaches. Null: every queue. Copied to its sessions.
alter table sluice.api_keys
  add column queues text[],
  add column own_tasks boolean not null default false;

-- The key that submitted a task, only if that key is confined to its own tasks: nobody else is asked.
alter table sluice.tasks add column owner text collate "C";
alter table sluice.task_history add column owner text collate "C";

-- The key that a worker registered with. Null: without one, or at a server of the version before.
alter table sluice.workers add column owner text;
