-- Tasks that have ended at the worker and whose results do not arrive, as its last heartbeat named them. Their attempts
-- do not time out. Null: there are none.
alter table sluice.workers add column undelivered uuid[];
