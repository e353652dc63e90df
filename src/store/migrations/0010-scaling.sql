-- Who asks for workers, and how that went: one server at a time, by a lease as in sluice.serving. Twice
-- would do no harm, since what is asked for is a number of workers and not how many more.
create table sluice.scaling (
  only_row boolean primary key default true check (only_row),
  asker uuid not null,
  renewed_at timestamptz not null,
  provisioner text not null check (provisioner in ('process', 'webhook')),
  asked_at timestamptz,
  failing_since timestamptz,
  error text,
  constraint scaling_failure check ((failing_since is null) = (error is null))
);
