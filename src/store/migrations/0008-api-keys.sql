-- Who may call. A key itself is nowhere: only its SHA-256, in hex.
create table sluice.api_keys (
  id text primary key,
  name text not null,
  hash text not null,
  scopes text[] not null,
  -- Its submits pass when all else is refused.
  passes_ceilings boolean not null default false,
  -- Of a person who signed in: lives shorter than the key that it was made of, and ends with it.
  session_of text references sluice.api_keys (id),
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  -- Servers read what changed since they looked. Being used is no change.
  changed_at timestamptz not null default now(),
  constraint api_keys_hashed check (hash ~ '^[0-9a-f]{64}$'),
  constraint api_keys_scopes_known check (
    cardinality(scopes) > 0 and scopes <@ array['submit', 'read', 'worker', 'admin']
  ),
  constraint api_keys_sessions_expire check (session_of is null or expires_at is not null)
) with (fillfactor = 50);

create index api_keys_changed on sluice.api_keys (changed_at);
create index api_keys_sessions on sluice.api_keys (session_of, created_at) where session_of is not null;
