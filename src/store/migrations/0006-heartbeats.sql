-- A heartbeat changes no column that an index reads: it is written in place, beside the row it replaces,
-- and costs no index entry. Who is silent is looked for among the living, of whom there are few.
drop index sluice.workers_living;
create index workers_living on sluice.workers (id) where status <> 'dead';
create index workers_dead on sluice.workers (id) where status = 'dead';
alter table sluice.workers set (fillfactor = 50);

-- Its silence began when nobody could have heard it. What it held goes back at no cost, whichever server
-- finds it.
alter table sluice.workers add column lapsed_unheard boolean not null default false;
