-- Lists of keys that are confined to their own tasks. Tasks of all others have no entry. Apart from the migration that
-- adds the column: together, the tasks would be locked against heartbeats of older servers while the index is made.
create index tasks_owned on sluice.tasks (owner, id) where owner is not null;
