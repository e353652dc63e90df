-- Whose keys these are, where several installations share one Redis.
create table sluice.installation (
  only_row boolean primary key default true check (only_row),
  id uuid not null default gen_random_uuid()
);

insert into sluice.installation default values;

-- The contents of the ready queue that claims may come from. It grows when they are restored.
create table sluice.generation (
  only_row boolean primary key default true check (only_row),
  number bigint not null default 0
);

insert into sluice.generation default values;

-- Every claim holds the lock shared until it commits, so whoever gets it alone knows that no claim
-- is under way. Volatile: each statement in it sees what was committed before it, so the number is
-- not the one from before the wait.
create function sluice.is_generation(expected bigint) returns boolean
language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock_shared(7378697630);
  return (select number = expected from sluice.generation where only_row);
end
$$;

-- Claims of earlier generations have committed when this answers, or will find the new number.
create function sluice.begin_generation() returns bigint
language plpgsql volatile
set lock_timeout = '10s'
as $$
declare
  begun bigint;
begin
  perform pg_advisory_xact_lock(7378697630);
  update sluice.generation set number = number + 1 where only_row returning number into begun;
  return begun;
end
$$;

-- What the buckets held, written once a second while they change. No index on "at": every write
-- changes it, and would then have to write to every index as well.
create table sluice.bucket_levels (
  bucket text collate "C" primary key,
  -- Below zero: in debt.
  tokens double precision not null,
  at timestamptz not null,
  -- Nothing was granted after it.
  is_final boolean not null default false
);

-- One sequence for all limits: one that is deleted and made again gets a greater version than it had.
create sequence sluice.limit_version;

select setval('sluice.limit_version', max(version)) from sluice.limits having count(*) > 0;

alter table sluice.limits
  alter column version set default nextval('sluice.limit_version'),
  add column changed_at timestamptz not null default now();

create index limits_changed on sluice.limits (changed_at);

-- Which Redis it is that servers share, by a name that is kept in it.
alter table sluice.serving add column place text;

-- Until when a worker gets nothing, since it fails while others succeed. It stays until the worker
-- succeeds: in the past, the worker is tried with a few tasks.
alter table sluice.workers add column benched_until timestamptz;

create index workers_benched on sluice.workers (id)
  where benched_until is not null and status <> 'dead';
