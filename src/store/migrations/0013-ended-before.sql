-- How many have ended is looked up in eight rows. Most of the time it need not be: what had ended when
-- the present row of a scope began has ended, and often that leaves room enough.
alter table sluice.admission add column ended_before bigint not null default 0;

-- As in 0012.
create or replace function sluice.admit_in(
  of_scope text, n bigint, checks boolean, most_before bigint, known integer
) returns void
language plpgsql volatile as $$
declare
  written sluice.admission;
begin
  loop
    update sluice.admission set admitted = admitted + n, writes = writes + 1
    where scope = of_scope and epoch = (
      select epoch from sluice.admission where scope = of_scope order by epoch desc limit 1
    )
    returning * into written;
    exit when found;
    -- It was replaced while this waited for it, or is not counted any more.
    if not exists (select from sluice.admission where scope = of_scope) then
      return;
    end if;
  end loop;
  if checks and written.max_active is distinct from known then
    raise exception 'the ceiling is not the one that is known' using errcode = 'SL429';
  end if;
  if checks and written.admitted - n - written.ended_before > most_before then
    if written.admitted - n - sluice.ended_in(of_scope) > most_before then
      raise exception 'the ceiling is reached' using errcode = 'SL429';
    end if;
  end if;
  if written.writes >= 100 then
    delete from sluice.admission where scope = of_scope and epoch = written.epoch;
    insert into sluice.admission (scope, epoch, max_active, admitted, ended_before)
    values (
      of_scope, written.epoch + 1, written.max_active, written.admitted, sluice.ended_in(of_scope)
    );
  end if;
end
$$;
