-- A circuit may also be open because the service refuses the API key or the account has no quota left.
alter table sluice.queues
  drop constraint queues_circuit_reason,
  add constraint queues_circuit_reason check (
    case when circuit = 'closed' then circuit_reason is null
      else circuit_reason is not null and circuit_reason in (
        'rate_limited', 'unavailable', 'quota_exhausted', 'unauthorized', 'forbidden'
      )
    end
  );
