-- What is to be purged: by state, the oldest end first. With a condition of its own, so that no list
-- of dead letters is read by it.
create index tasks_purgeable on sluice.tasks (status, ended_at) where ended_at is not null;

-- Times that it had run when it was last replayed: its dispatch deadline counts anew from then.
alter table sluice.tasks add column runs_before_replay integer not null default 0;
