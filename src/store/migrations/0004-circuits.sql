-- Whether the service behind a queue is called: a change is a new version of the queue's row, so that
-- whoever holds an older one ignores it.
alter table sluice.queues
  add column circuit text not null default 'closed',
  add column circuit_reason text,
  -- Open: until then nothing is taken, and when the latest probes were let go.
  add column circuit_until timestamptz,
  add column circuit_probes_at timestamptz,
  -- Recovering: since when, and how far.
  add column circuit_since timestamptz,
  add column circuit_step smallint,
  -- How often it opened before since it was closed, and of how many slots it recovers a share.
  add column circuit_trips integer not null default 0,
  add column circuit_slots integer not null default 0,
  add constraint queues_circuit_known check (circuit in ('closed', 'open', 'recovering')),
  add constraint queues_circuit_reason check (
    case when circuit = 'closed' then circuit_reason is null
      else circuit_reason is not null and circuit_reason in ('rate_limited', 'unavailable')
    end
  ),
  add constraint queues_circuit_open check (
    (circuit = 'open') = (circuit_until is not null)
    and (circuit = 'open') = (circuit_probes_at is not null)
  ),
  add constraint queues_circuit_recovering check (
    (circuit = 'recovering') = (circuit_since is not null)
    and (circuit = 'recovering') = (circuit_step is not null)
    and (circuit_step is null or circuit_step in (0, 1))
  ),
  add constraint queues_circuit_counts check (
    circuit_trips >= 0 and circuit_slots >= 0
    and (circuit <> 'closed' or (circuit_trips = 0 and circuit_slots = 0))
  );
