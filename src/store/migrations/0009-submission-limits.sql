-- How many tasks were submitted in one slot of a window; see src/domain/submission-limit.ts.
create type sluice.submission_slot as (per_seconds integer, slot bigint, tasks integer);

-- What was submitted lately, by API key and by user, while that is limited.
create table sluice.submissions (
  subject text collate "C" primary key,
  slots sluice.submission_slot[] not null,
  -- Of the latest statement: what it asked for, and what it was let through, which is how it is told.
  wanted integer not null,
  granted integer not null,
  -- To the hour: every write would change a finer one, and then its index as well.
  purge_at timestamptz not null
) with (fillfactor = 50);

create index submissions_purgeable on sluice.submissions (purge_at);
