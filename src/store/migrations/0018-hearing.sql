-- Each server proves about once a second that it can write heartbeats: the statement takes the same locks
-- on the same tables, over the same connections. The silence of a worker counts only while the server
-- that heard it last has such proofs.
create table sluice.servers (
  id uuid primary key,
  -- The proofs since then have no gap.
  hearing_since timestamptz not null,
  -- The last proof. Tests move this clock; proven_at is always Postgres's own.
  heard_at timestamptz not null,
  proven_at timestamptz not null
) with (fillfactor = 50);

-- The server that wrote its last heartbeat. Null: a server of the version before.
alter table sluice.workers add column heard_by uuid;
